// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does several pieces of work at once.

#include <cstddef>
#include <functional>
#include <vector>

namespace ullage::cli {

// Does all of `work`, at most `at_once` pieces at a time, and begins them in order. Returns once all are done. A piece
// that throws ends none of the others; the first exception is thrown again at the end. The pieces run on threads that
// signals may interrupt.
void side_by_side(const std::vector<std::function<void()>>& work, std::size_t at_once);

}  // namespace ullage::cli
