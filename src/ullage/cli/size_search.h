// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the largest size of a program that fits, by running it at a few sizes. Edit this to change at which sizes
// programs are run.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::cli {

// The result of one run at a size.
struct SizeTried {
  bool fits = false;
  // Bytes of memory that it takes; more than there are, if it does not fit. None: not known.
  std::optional<Bytes> took;
};

// The largest size found that fits and the smallest that does not. A value is missing if no such size was found.
struct SizesFound {
  std::optional<std::int64_t> fits, too_large;
};

// Searches from `first`, whose result is `at_first`. `room` is the memory. If `run` returns nothing, the search ends
// with what is known: the program failed for another reason, or no time is left. Sizes are 1 to 2^20. They are chosen
// so:
// - At first a size is doubled if it fits, and halved if it does not.
// - Once the bytes of two sizes are known, a line through the last two of these gives the size that fills the memory.
// - While no size fits, every third try halves.
// - Once a size was too large and one fits, every third try goes down from the smallest size that was too large. The
//   steps down double. A try whose line gives no size below that one goes down too.
// - If such a step would reach a size that is known to fit, or if there is no line, the range between is bisected.
SizesFound search_sizes(std::int64_t first, const SizeTried& at_first, Bytes room,
                        const std::function<std::optional<SizeTried>(std::int64_t)>& run);

}  // namespace ullage::cli
