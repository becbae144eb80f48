// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/html_text.h"

#include "vqgan_clip/html_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

constexpr std::size_t kLongestName = 32;  // html.unescape looks no further
constexpr char32_t kNoCharacter = 0x110000;
constexpr char32_t kReplacement = 0xfffd;

// Windows-1252 from 128 to 159. Zero: it has no character, and the number itself is used, as in HTML 5.
constexpr std::array<char16_t, 32> kWindows = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                               0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                               0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                               0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

void append_utf8(std::string& out, char32_t c) {
  const auto byte = [&](char32_t value) { out += static_cast<char>(value); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f));
  } else {
    byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 0x3f)), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f));
  }
}

// Returns the text that HTML 5 gives the number.
std::string of_number(char32_t number) {
  std::string out;
  if (number >= 128 && number < 160 && kWindows[number - 128] != 0) {
    number = kWindows[number - 128];
  } else if (number == 0 || number >= kNoCharacter || (number >= 0xd800 && number <= 0xdfff)) {
    number = kReplacement;
  } else if ((number < 32 && number != '\t' && number != '\n' && number != '\f' && number != '\r') || number == 127 ||
             (number >= 0xfdd0 && number <= 0xfdef) || (number & 0xfffe) == 0xfffe) {
    return out;
  }
  append_utf8(out, number);
  return out;
}

// A reference without its '&': the text it stands for, and its length in bytes. Zero: it is no reference.
struct Reference {
  std::string stands_for;
  std::size_t length = 0;
};

Reference numeric(std::string_view text, References which) {  // "#233;..."
  const bool hex = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  std::size_t at = hex ? 2 : 1;
  const std::size_t begin = at;
  char32_t number = 0;
  for (; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (hex ? std::isxdigit(c) == 0 : std::isdigit(c) == 0) break;
    const char32_t digit = std::isdigit(c) != 0 ? c - '0' : static_cast<char32_t>(std::tolower(c) - 'a' + 10);
    number = std::min<char32_t>(number * (hex ? 16 : 10) + digit, kNoCharacter);
  }
  if (at == begin) return {};
  const bool ended = at < text.size() && text[at] == ';';
  if (!ended && which == References::Ended) return {};
  return {of_number(number), ended ? at + 1 : at};
}

const HtmlName* find_name(std::string_view name) {
  const auto* found = std::lower_bound(kHtmlNames.begin(), kHtmlNames.end(), name,
                                       [](const HtmlName& one, std::string_view wanted) { return one.name < wanted; });
  return found != kHtmlNames.end() && found->name == name ? found : nullptr;
}

Reference named(std::string_view text, References which) {  // "eacute;..."
  std::size_t letters = 0;
  while (letters < std::min(text.size(), kLongestName) &&
         std::isalnum(static_cast<unsigned char>(text[letters])) != 0) {
    ++letters;
  }
  for (std::size_t length = letters; length > 1; --length) {
    const HtmlName* found = find_name(text.substr(0, length));
    if (found == nullptr) continue;
    const bool ended = length < text.size() && text[length] == ';';
    const bool may_be_open = which == References::All && found->character < 256 && found->name != "apos";
    if (!ended && !may_be_open) continue;
    Reference reference{"", ended ? length + 1 : length};
    append_utf8(reference.stands_for, found->character);
    return reference;
  }
  return {};
}

}  // namespace

std::string unescape_html(std::string_view text, References which) {
  std::string out;
  while (true) {
    const std::size_t mark = text.find('&');
    out += text.substr(0, mark);
    if (mark == std::string_view::npos) return out;
    text.remove_prefix(mark + 1);
    const Reference reference = text.starts_with('#') ? numeric(text, which) : named(text, which);
    out += reference.length == 0 ? "&" : reference.stands_for;
    text.remove_prefix(reference.length);
  }
}

}  // namespace ullage::vqgan_clip
