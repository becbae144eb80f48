// SPDX-License-Identifier: Apache-2.0
#pragma once

// Remembers when the card was last given work on the bytes at some addresses. Points in time are growing numbers.
// Nothing is known of addresses that were never named. A later use replaces the parts of earlier ones that it covers:
//
//   used(B, 7)    |-- 3 --|-- B: 7 --|-- 3 --|      ..........
//   used(C, 9)    |-- 3 --|-- 7 -|----- C: 9 -----|   (unknown)

#include "ullage/base/bytes.h"

#include <cstdint>
#include <map>
#include <optional>

namespace ullage::cuda {

// Not thread-safe.
class LastUses final {
 public:
  using Point = std::uint64_t;

  // All bytes of the range were last used at `at`.
  void used(Address begin, Bytes size, Point at);
  // Returns the latest use of any byte of the range; nothing if part of the range is not known.
  std::optional<Point> last(Address begin, Bytes size) const;

 private:
  struct Use {
    Address end;
    Point at;
  };
  void cut_at(Address at);

  std::map<Address, Use> uses_;  // by begin; no two overlap
};

}  // namespace ullage::cuda
