// SPDX-License-Identifier: Apache-2.0
#pragma once

// A driver library without a card, with the C functions of libcuda.so.1 that Ullage uses: bytes of a card are bytes of
// an unnamed file, mapped where the caller says, so that a test can look at them. It is as late as a card may be and
// stricter than one: kernels run only when somebody waits for all of them, copies at once, and a wrong call fails. (The
// oracle's stand-in is another: PyTorch's allocator asks it for up to 80 GiB, which are only counted.)

#include <cstdint>

extern "C" {

struct StandInCounts {
  std::uint64_t used;  // bytes of the card behind handles
  std::uint64_t used_peak;
  std::uint64_t shown_peak;  // the most that was in use, what is held otherwise included
  std::uint64_t handles;
  std::uint64_t mapped;  // pages
  std::uint64_t pinned;  // bytes of the host
  std::uint64_t waits;   // for all of its work
};

inline constexpr char kStandInBusId[] = "0000:3B:00.0";

// From now on, instead of 1 GiB each; nothing may be mapped. Nobody holds more than is behind handles.
void stand_in_reset(std::uint64_t card_bytes, std::uint64_t host_bytes_to_pin);
StandInCounts stand_in_counts();
// Queues a kernel that uses [at, at + size): taking that away before it ran fails. It runs on the thread that waits.
void stand_in_launch(void (*kernel)(void*), void* argument, std::uint64_t at, std::uint64_t size);
// How many were queued so far; and runs them, in their order, until so many have run.
std::uint64_t stand_in_launched();
void stand_in_run(std::uint64_t kernels);
// The n-th call from now on of a function that takes memory or maps fails; 0: none.
void stand_in_fail(int call);
// Of the card, by contexts and other processes: what it has less than its handles say.
void stand_in_hold(std::uint64_t bytes);
// The card does not say any more what it has left, as after a kernel's error; until the next reset.
void stand_in_break();
}
