// SPDX-License-Identifier: Apache-2.0
#include "image/png_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ullage::image {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Character {
  char32_t code = kReplacement;
  std::size_t bytes = 1;  // its bytes in the text
};

// Returns the first character of `text`, which is not empty; U+FFFD for one byte if no well-formed character begins
// there.
Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {byte(0) == 0 ? kReplacement : byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < bytes) return {};
  char32_t code = byte(0) & (0x7F >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < kLeast[bytes] || code > 0x10FFFF || surrogate ? Character{} : Character{code, bytes};
}

}  // namespace

StoredText stored_text(const std::string& utf8) {
  StoredText stored;
  std::string whole;
  for (std::string_view rest = utf8; !rest.empty();) {
    const Character character = first_character(rest);
    whole += character.code == kReplacement ? "\xEF\xBF\xBD" : rest.substr(0, character.bytes);
    stored.latin1 = stored.latin1 && character.code < 0x100;
    stored.bytes += static_cast<char>(character.code);
    rest.remove_prefix(character.bytes);
  }
  if (!stored.latin1) stored.bytes = std::move(whole);
  return stored;
}

bool is_png_keyword(const std::string& keyword) {
  const bool printable = std::all_of(keyword.begin(), keyword.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return printable && !keyword.empty() && keyword.size() < 80 && keyword.front() != ' ' && keyword.back() != ' ' &&
         keyword.find("  ") == std::string::npos;
}

}  // namespace ullage::image
