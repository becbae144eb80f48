// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matches patterns with gaps, as the tables of message_forms.h write them: "GPU # has a total capacity of $". The text
// is squeezed: lower case, without blanks (message_text.h). So blanks and case do not count. The gaps are
//   $  a size: "2.00 GiB", "0 bytes", "1EB", "4,096 bytes"    ~  a size that is not kept
//   &  a number in the unit of the size after it              #  the number of a device
//   ^  the number of a process                                %  a number that is not kept
//   @  a shape, "25088,4096"                                  ?  the name of a type, "float"; with the shape, a size
//   |  bytes without a unit, "2830172160"                     +  a size with a short unit, "21.95G", "512MB", "16Gi"
//   *  at most three of  : = ( ' "  between a word and its number, or nothing
// A backslash before such a character means the character itself: "posix_memalign(\\&data".

#include "ullage/base/bytes.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::read {

// ASCII lower case.
constexpr char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns whether the character of a pattern stands for a number or a text, rather than for itself.
constexpr bool is_gap(char c) { return std::string_view("$~&#^%@?|+*").find(c) != std::string_view::npos; }
inline constexpr char kLiteral = '\\';

struct MessageSize {
  // The written figure, rounded up to whole bytes. Ullage's to_string() rounds down, so it prints the same figure
  // again. None if it does not fit 64 bits.
  std::optional<Bytes> bytes;
  Bytes precision;             // half a unit of the last digit; zero if the unit is bytes
  bool decimal_label = false;  // written KB, MB, GB, which are binary all the same
  std::size_t end = 0;         // index after the unit
};

// Returns the size that begins at `at` in squeezed text. Returns nothing if there is no number or no unit, if bytes
// have a fraction, or if the text may end within the unit.
std::optional<MessageSize> size_at(std::string_view letters, std::size_t at);

struct Match {
  std::array<MessageSize, 4> sizes;  // of $, &, ?, | and +, in order
  std::size_t size_count = 0;
  std::optional<std::uint64_t> device;
  std::optional<std::uint64_t> process;
  std::size_t end = 0;  // index after the last letter
};

// Matches `pattern` at index `at` of squeezed text. A number must end before the text does: "GPU 1" may be the
// beginning of "GPU 12".
std::optional<Match> match_at(std::string_view pattern, std::string_view letters, std::size_t at);

}  // namespace ullage::read
