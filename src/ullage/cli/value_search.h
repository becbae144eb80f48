// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds which value of an option fills a memory best, by running the program at a few values. The runs show whether a
// larger value takes more memory or less. Sizes that a command gets in braces are searched in size_search.h. Edit this
// to change at which values programs are run.

#include "ullage/base/bytes.h"
#include "ullage/base/knob.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace ullage::cli {

// The result of one run.
struct ValueTried {
  bool fits = false;
  std::optional<Bytes> took;  // missing if the run failed
};

struct ValueFound {
  std::size_t index = 0;  // into the values that were searched
  bool falls = false;     // a larger value takes less memory, so this is the smallest that fits; else it is the largest
};

// The values of a choice and where `start` is in them; it is added if it is not one of them.
struct ValuesFrom {
  std::vector<std::int64_t> values;
  std::size_t first = 0;
};
ValuesFrom values_from(const Choice& choice, std::int64_t start);

// Searches `values`, which ascend, from values[first], whose result is `at_first`. `room` is the memory. Doubles the
// value while it fits, or halves it while it does not, then bisects. Turns around if the runs show that a larger value
// takes less. Returns nothing if no value fits. `run` is called at most once for each value.
//
// Bytes need not rise or fall everywhere: a kernel may take another path. So while the next value fits or takes hardly
// more than `room` (1/64), up to four more are tried. The value found was run and fits. The next one was run and does
// not fit, unless `values` end there or the fourth of these fits.
std::optional<ValueFound> search_values(const std::vector<std::int64_t>& values, std::size_t first,
                                        const ValueTried& at_first, Bytes room,
                                        const std::function<ValueTried(std::int64_t value)>& run);

}  // namespace ullage::cli
