// SPDX-License-Identifier: Apache-2.0
#include "ullage/advise/advice.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace ullage::advise {

void sort_rows(Advice& advice) {
  const auto order = [](const Row& row) {
    const bool fits = row.fits.value_or(false);
    // Of the rows that fit, those that were tried come before those that were computed. In each of these two groups, a
    // row of unknown effect comes last. Of the rows of one effect, one of unknown time comes last.
    const int effect = row.effect_known ? static_cast<int>(row.effect) : std::numeric_limits<int>::max();
    const double time = row.more_time.value_or(std::numeric_limits<double>::max());
    const Bytes peak = row.peak.value_or(Bytes{std::numeric_limits<std::uint64_t>::max()});
    return std::tuple(!fits, fits && row.basis == Basis::Computed, fits ? effect : 0, fits ? time : 0.0, peak);
  };
  std::stable_sort(advice.rows.begin(), advice.rows.end(),
                   [&](const Row& a, const Row& b) { return order(a) < order(b); });
}

}  // namespace ullage::advise
