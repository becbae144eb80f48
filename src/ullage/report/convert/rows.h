// SPDX-License-Identifier: Apache-2.0
#pragma once

// Spreads slices that overlap in time over as few rows as possible, so that no two in a row overlap.

#include <cstdint>
#include <vector>

namespace ullage::report {

struct Extent {
  std::int64_t begin = 0, end = 0;  // half-open
};

// Returns the row of each extent, from 0. Extents are placed in the order of their begins, each in the first free row.
std::vector<unsigned> rows_of(const std::vector<Extent>& extents);

}  // namespace ullage::report
