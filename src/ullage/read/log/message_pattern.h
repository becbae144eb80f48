// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wordings with gaps, as the tables of message_forms.h write them: "GPU # has a total capacity of $". Blanks and case
// do not count. The gaps are
//   $  a size: "2.00 GiB", "0 bytes", "1EB", "4,096 bytes"    ~  a size that is no figure of its own
//   &  a number in the unit of the size behind it             #  the number of a device
//   ^  the number of a process                                %  a number that does not matter
//   @  a shape, "25088,4096"                                  ?  the name of a type, "float", which makes the shape a
//   size

#include "ullage/base/bytes.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::read {

// In lower case, of ASCII.
constexpr char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

struct MessageSize {
  // The least whole number of bytes that is not below what is written, so that printing it, which rounds down, gives
  // the same text again. None: more than 64 bits hold.
  std::optional<Bytes> bytes;
  Bytes precision;             // half a unit of the last digit; zero where bytes are counted
  bool decimal_label = false;  // written KB, MB, GB; they are binary all the same
  std::size_t end = 0;         // behind the unit
};

// The size that begins here, in squeezed text. None when there is no number, no unit, or a unit that the end of the
// text may have cut off.
std::optional<MessageSize> size_at(std::string_view letters, std::size_t at);

struct Match {
  std::array<MessageSize, 4> sizes;  // of $ and &, in order
  std::size_t size_count = 0;
  std::optional<std::uint64_t> device;
  std::optional<std::uint64_t> process;
  std::size_t end = 0;  // behind the last letter
};

// Whether the wording stands at this place of the squeezed text. Numbers must end before the text does: "GPU 1" may be
// the beginning of "GPU 12".
std::optional<Match> match_at(std::string_view pattern, std::string_view letters, std::size_t at);

}  // namespace ullage::read
