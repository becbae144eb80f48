// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table that torch.cuda.memory_summary() prints, as numbers. torch rounds each cell down to the cell's unit.

#include "ullage/base/bytes.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::trace {

struct SummaryCell {
  std::uint64_t value = 0;  // bytes, or a count for rows of counts
  Bytes precision;          // the true value is in [value, value + precision)
};

struct SummaryRow {
  std::string name;                  // "Allocated memory"
  std::string pool;                  // "", "large", "small"
  bool counts = false;               // the values are counts, not bytes
  std::array<SummaryCell, 4> cells;  // current, peak, total allocated, total freed
};

struct MemorySummary {
  std::optional<unsigned> device;
  std::optional<std::uint64_t> ooms;
  std::optional<std::uint64_t> retries;  // how often cudaMalloc was tried again after free segments were given back
  std::vector<SummaryRow> rows;
  std::string torch;       // the versions that print such a table, "2.0 or later"; empty: unknown
  std::uint64_t line = 0;  // number of the table's first line in the file, from 1 on

  // Null if the table has no such row.
  const SummaryRow* row(const std::string& name, const std::string& pool = "") const;
};

}  // namespace ullage::trace
