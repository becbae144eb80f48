// SPDX-License-Identifier: Apache-2.0
#pragma once

// An NVML without a card, with the C functions that Ullage uses: it says of the card of stand_in_driver.h what a test
// tells it to say, and refuses who has not started it.

#include <cstdint>

extern "C" {

inline constexpr std::uint64_t kStandInNotAvailable = UINT64_MAX;

struct StandInProcess {
  std::uint32_t pid;
  std::uint64_t used;  // bytes, or kStandInNotAvailable
};

// A card of that size with nobody on it, refusing nothing; questions are counted from zero.
void stand_in_nvml_reset(std::uint64_t total);
void stand_in_nvml_list(const StandInProcess* processes, unsigned count);
// Each call but start and end gives that error from now on; 0: none.
void stand_in_nvml_refuse(int error);
// Runs in the midst of each question for processes, on the thread that asks, with nothing locked; null: nothing.
void stand_in_nvml_during(void (*what)(void*), void* argument);
std::uint64_t stand_in_nvml_questions();  // for processes
int stand_in_nvml_started();              // by how many, now
}
