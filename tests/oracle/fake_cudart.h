// SPDX-License-Identifier: Apache-2.0
#pragma once

// How replay_real.cpp configures the stand-in for libcudart.so.13 and reads its counters. Includes neither torch nor
// CUDA.

#include <cstdint>

// Where the device's addresses begin. Nothing is mapped there, so an access ends the process.
inline constexpr std::uint64_t kFakeBaseAddress = 1ull << 46;

struct FakeDeviceSettings {
  std::uint64_t total = 80ull << 30;  // bytes
  std::uint64_t event_queries = 0;    // an event completes at its n-th query; 0 and 1: at once
  bool first_fit = false;             // true: the lowest free addresses are handed out; false: addresses only grow
};

struct FakeDeviceCounters {
  std::uint64_t taken, refused, given;  // calls that allocated, failed to allocate, freed
  std::uint64_t used;                   // bytes
  std::uint64_t events_not_ready;       // queries that were answered "not ready"
  std::uint64_t stream_waits;           // calls that make a stream wait for an event
};

extern "C" {
// Call this before the first allocation.
void fake_cuda_configure(const FakeDeviceSettings* settings);
void fake_cuda_counters(FakeDeviceCounters* out);
}
