// SPDX-License-Identifier: Apache-2.0
#pragma once

// Slices that overlap in time, spread over as few rows as possible so that no two of a row overlap.

#include <cstdint>
#include <vector>

namespace ullage::report {

struct Extent {
  std::int64_t begin = 0, end = 0;  // half-open
};

// The row of each, from 0; extents are taken by begin, each into the first row that is free.
std::vector<unsigned> rows_of(const std::vector<Extent>& extents);

}  // namespace ullage::report
