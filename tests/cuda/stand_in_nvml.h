// SPDX-License-Identifier: Apache-2.0
#pragma once

// An NVML without a card, with the C functions that Ullage uses. A test says what it reports about the card of
// stand_in_driver.h. Like NVML, it refuses calls before it was started.

#include <cstdint>

extern "C" {

inline constexpr std::uint64_t kStandInNotAvailable = UINT64_MAX;

struct StandInProcess {
  std::uint32_t pid;
  std::uint64_t used;  // bytes, or kStandInNotAvailable
};

// Resets to a card of `total` bytes without processes and without errors, and counts questions from zero.
void stand_in_nvml_reset(std::uint64_t total);
void stand_in_nvml_list(const StandInProcess* processes, unsigned count);
// Every call but start and end fails with `error` from now on; 0: none fails.
void stand_in_nvml_refuse(int error);
// Runs `what` during each query for processes, on the thread that asks, with no lock held; null: nothing.
void stand_in_nvml_during(void (*what)(void*), void* argument);
std::uint64_t stand_in_nvml_questions();  // queries for processes
int stand_in_nvml_started();              // starts without an end so far
}
