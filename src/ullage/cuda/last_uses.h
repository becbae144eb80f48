// SPDX-License-Identifier: Apache-2.0
#pragma once

// When the card was last given work on the bytes at some addresses. Points in time are numbers that grow; of addresses
// that nobody spoke of nothing is known.
//
//   used(B, 7)    |-- 3 --|-- B: 7 --|-- 3 --|      ..........
//   used(C, 9)    |-- 3 --|-- 7 -|----- C: 9 -----|   (unknown)

#include "ullage/base/bytes.h"

#include <cstdint>
#include <map>
#include <optional>

namespace ullage::cuda {

class LastUses final {
 public:
  using Point = std::uint64_t;

  void used(Address begin, Bytes size, Point at);
  // The last for any byte of the range; nothing where some of it is not known.
  std::optional<Point> last(Address begin, Bytes size) const;

 private:
  struct Use {
    Address end;
    Point at;
  };
  void cut_at(Address at);

  std::map<Address, Use> uses_;  // by their begins; they do not overlap
};

}  // namespace ullage::cuda
