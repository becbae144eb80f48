// SPDX-License-Identifier: Apache-2.0

// Watches a Python while it loads torch, and gives back pages of libraries. Loading alone touches 134 to 149 MiB of
// code on a kernel that keeps files in huge pages; most of it never runs again. The runtime comes when that has
// happened. If the budget is below what was held then, it refuses to start, but the system has counted the peak. If
// giving back does not help, the runtime is brought in before its time, so that it refuses then. It always does: what
// the process holds and what the first steps take on top pass the budget.

#include "ullage/base/library_pages.h"
#include "ullage/preload/preload.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace ullage::preload {
namespace {

// Begins to give back before the budget is reached: loading takes 10 MiB in 10 ms, and a round takes some.
constexpr std::size_t kMargin = std::size_t{16} << 20;
constexpr std::size_t kLeastMargin = std::size_t{8} << 20;  // as store::Budget::kMargin
constexpr useconds_t kBetweenLooks = 1000;                  // microseconds
// After a round, because the code that still runs comes back first.
constexpr useconds_t kBetweenRounds = 10000;

std::atomic<bool> over{true};
std::size_t budget = 0;

void* watch(void*) {
  while (!over.load(std::memory_order_relaxed)) {
    const bool near = resident_bytes() + kMargin > budget;
    if (near) trim_libraries();
    if (near && resident_bytes() + kLeastMargin > budget) refuse_to_load();
    ::usleep(near ? kBetweenRounds : kBetweenLooks);
  }
  return nullptr;
}

}  // namespace

void begin_to_guard_loading() {
  const char* text = std::getenv(kLoadsWithin);
  budget = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
  if (budget == 0 || !over.load()) return;
  over.store(false);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signal handlers run where they ran before
  pthread_t guard{};
  if (pthread_create(&guard, nullptr, &watch, nullptr) == 0) {
    pthread_detach(guard);
  } else {
    over.store(true);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Does not wait for the guard, which may be waiting for the interpreter's lock.
void end_to_guard_loading() { over.store(true); }

}  // namespace ullage::preload
