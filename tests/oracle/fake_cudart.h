// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a test steers the stand-in for libcudart.so.13. Neither torch nor CUDA is included here.

#include <cstdint>

// Where the device's addresses begin. Nothing is mapped there: a touch would end the process.
inline constexpr std::uint64_t kFakeBaseAddress = 1ull << 46;

struct FakeDeviceSettings {
  std::uint64_t total = 80ull << 30;  // bytes
  std::uint64_t event_queries = 0;    // an event completes at its n-th question; 0 and 1: at once
  bool first_fit = false;             // the lowest free addresses are handed out; else they only grow
};

struct FakeDeviceCounters {
  std::uint64_t taken, refused, given;  // calls
  std::uint64_t used;                   // bytes
  std::uint64_t events_not_ready;       // answers
  std::uint64_t stream_waits;           // of one stream for an event
};

extern "C" {
// Before the first allocation.
void fake_cuda_configure(const FakeDeviceSettings* settings);
void fake_cuda_counters(FakeDeviceCounters* out);
}
