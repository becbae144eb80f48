// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does several pieces of work at once, such as the trial runs of `ullage advise`.

#include <cstddef>
#include <functional>
#include <vector>

namespace ullage::cli {

// Does all of `work`, at most `at_once` pieces at a time, and begins them in order. Returns once all are done. The
// calling thread does pieces too, so `at_once` of 0 means 1. If a piece throws, the others are still done. At the end
// one of the exceptions is thrown again: the calling thread's first one if it had any, else that of another thread.
// Signals are not blocked on these threads. So a handler may run there, and a system call in a piece may fail with
// EINTR.
void side_by_side(const std::vector<std::function<void()>>& work, std::size_t at_once);

}  // namespace ullage::cli
