// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table that torch.cuda.memory_summary() prints, wherever it stands in a text: old and new, short, cut off.

#include "ullage/trace/recording/memory_summary.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace ullage::read {

struct FoundSummary {
  trace::MemorySummary summary;  // without its line
  std::size_t begin = 0;         // offset of the table's first line
  std::size_t end = 0;           // behind its last
};

// The table around this offset, no earlier than `not_before`; none when no row of it can be read.
std::optional<FoundSummary> summary_around(std::string_view text, std::size_t offset, std::size_t not_before);

}  // namespace ullage::read
