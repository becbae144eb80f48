// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the table that torch.cuda.memory_summary() prints, anywhere in a text: of any version, abbreviated or cut off.

#include "ullage/trace/recording/memory_summary.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace ullage::read {

struct FoundSummary {
  trace::MemorySummary summary;  // all but summary.line
  std::size_t begin = 0;         // offset of the table's first line
  std::size_t end = 0;           // offset after its last line
};

// Returns the table around `offset`; its lines before offset `not_before` are ignored. None if no row can be read.
std::optional<FoundSummary> summary_around(std::string_view text, std::size_t offset, std::size_t not_before);

}  // namespace ullage::read
