// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/clip_text.h"

#include "ullage/base/utf8.h"
#include "vqgan_clip/html_text.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <array>

namespace ullage::vqgan_clip {
namespace {

constexpr char32_t kLongS = 0x17f;  // CLIP's pattern for words ignores case, and this is another case of s

bool is_control(UChar32 c) {
  return c <= 0x08 || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f || (c >= 0x206a && c <= 0x206f) ||
         c == 0xfeff || (c >= 0xfff9 && c <= 0xfffc);
}

// Characters that ftfy replaces by ordinary letters: ij and the like, dz and the like, ff to st, other widths.
bool has_ordinary_form(UChar32 c) {
  return c == 0x132 || c == 0x133 || c == 0x149 || (c >= 0x1c4 && c <= 0x1cc) || (c >= 0x1f1 && c <= 0x1f3) ||
         (c >= 0xfb00 && c <= 0xfb06) || (c >= 0xff01 && c <= 0xffef) || c == 0x3000;
}

// ICU's tables come with its library; they are missing only if the installation is broken.
const icu::Normalizer2& forms(const icu::Normalizer2* (*instance)(UErrorCode&)) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::Normalizer2* found = instance(code);
  ULLAGE_CHECK(U_SUCCESS(code) && found != nullptr, "ICU has its tables of forms");
  return *found;
}

icu::UnicodeString composed(const icu::UnicodeString& text, const icu::Normalizer2& form) {
  UErrorCode code = U_ZERO_ERROR;
  icu::UnicodeString out = form.normalize(text, code);
  ULLAGE_CHECK(U_SUCCESS(code), "ICU normalises every text");
  return out;
}

void append_ordinary(icu::UnicodeString& out, UChar32 c) {
  if (is_control(c)) return;
  if (c == 0x2bc || (c >= 0x2018 && c <= 0x201b)) {
    out.append(u'\'');
  } else if (c >= 0x201c && c <= 0x201f) {
    out.append(u'"');
  } else if (c == 0x149) {
    out.append(u'\'').append(u'n');  // n preceded by a quote, which is made straight
  } else if (c == 0xfb05) {
    out.append(static_cast<UChar32>(kLongS)).append(u't');
  } else if (has_ordinary_form(c)) {
    out.append(composed(icu::UnicodeString(c), forms(icu::Normalizer2::getNFKCInstance)));
  } else {
    out.append(c);
  }
}

icu::UnicodeString ordinary(const icu::UnicodeString& text) {
  icu::UnicodeString out;
  for (int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1)) append_ordinary(out, text.char32At(at));
  return composed(out, forms(icu::Normalizer2::getNFCInstance));
}

std::string utf8(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

icu::UnicodeString with_single_blanks(const icu::UnicodeString& text) {
  icu::UnicodeString out;
  bool blank = false;
  for (int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1)) {
    const UChar32 c = text.char32At(at);
    if (u_isUWhiteSpace(c)) {
      blank = !out.isEmpty();
      continue;
    }
    if (blank) out.append(u' ');
    blank = false;
    out.append(c);
  }
  return out;
}

enum class Class { White, Letter, Figure, Other };

Class class_of(std::uint32_t code) {
  const auto c = static_cast<UChar32>(code);
  if (u_isUWhiteSpace(c)) return Class::White;
  const std::uint32_t general = U_GET_GC_MASK(c);
  if ((general & U_GC_L_MASK) != 0) return Class::Letter;
  return (general & U_GC_N_MASK) != 0 ? Class::Figure : Class::Other;
}

// Returns the bytes of the special word at the start of the text, or 0.
std::size_t special_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kSpecial = {
      "<|startoftext|>", "<|endoftext|>", "'s", "'\u017f", "'t", "'re", "'ve", "'m", "'ll", "'d"};
  for (const std::string_view word : kSpecial) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

// Returns the bytes of the first word; a white space character counts as a word.
std::size_t first_word(std::string_view text) {
  if (const std::size_t special = special_word(text); special != 0) return special;
  const Utf8Character first = first_utf8(text);
  ULLAGE_CHECK(first.length != 0, "cleaned text is UTF-8");
  const Class kind = class_of(first.code);
  std::size_t length = first.length;
  if (kind == Class::Figure || kind == Class::White) return length;
  while (length < text.size()) {
    const Utf8Character next = first_utf8(text.substr(length));
    ULLAGE_CHECK(next.length != 0, "cleaned text is UTF-8");
    if (class_of(next.code) != kind) break;
    length += next.length;
  }
  return length;
}

}  // namespace

Result<std::string> clean_text(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character next = first_utf8(rest);
    if (next.length == 0 || next.surrogate()) {
      return Error{Error::Kind::BadArgument,
                   "the text is no UTF-8 from its byte " + std::to_string(text.size() - rest.size()) +
                       " on; set the terminal's encoding to UTF-8",
                   ""};
    }
    rest.remove_prefix(next.length);
  }
  // ftfy resolves references before it looks at characters, unless the text looks like HTML.
  const std::string first =
      text.find('<') == std::string_view::npos ? unescape_html(text, References::Ended) : std::string(text);
  const std::string plain = utf8(ordinary(icu::UnicodeString::fromUTF8(first)));
  icu::UnicodeString cleaned = icu::UnicodeString::fromUTF8(unescape_html(unescape_html(plain)));
  return utf8(with_single_blanks(cleaned).toLower(icu::Locale::getRoot()));
}

std::vector<std::string_view> words_of(std::string_view cleaned) {
  std::vector<std::string_view> words;
  while (!cleaned.empty()) {
    const std::size_t length = first_word(cleaned);
    if (class_of(first_utf8(cleaned).code) != Class::White) words.push_back(cleaned.substr(0, length));
    cleaned.remove_prefix(length);
  }
  return words;
}

}  // namespace ullage::vqgan_clip
