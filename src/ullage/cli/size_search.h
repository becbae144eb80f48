// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the largest size of a program that fits, by running it at a few sizes.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::cli {

// What one run said of a size.
struct SizeTried {
  bool fits = false;
  Bytes took;  // bytes of the memory that it took; not used if it does not fit
};

// The largest size found that fits and the smallest that does not. A value is missing if no such size was found.
struct SizesFound {
  std::optional<std::int64_t> fits, too_large;
};

// Searches from `first`, whose result is `at_first`; `room` is the memory. The line through the bytes of the last two
// sizes that fit says at which size the memory should be full, and that size is tried next. Once a size was too large,
// the search takes turns between that line and steps down from the size that was too large. The steps double, because
// the answer is near there; when they reach the size that fits, bisection goes on. Ends early, with what is known, when
// `run` returns nothing: the program failed for another reason, or no time is left. Sizes are 1 to 2^20.
SizesFound search_sizes(std::int64_t first, const SizeTried& at_first, Bytes room,
                        const std::function<std::optional<SizeTried>(std::int64_t)>& run);

}  // namespace ullage::cli
