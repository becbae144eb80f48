// SPDX-License-Identifier: Apache-2.0
#pragma once

// A driver library without a card, with the C functions of libcuda.so.1 that Ullage uses. The card's bytes are bytes of
// an unnamed file, mapped where the caller says, so that a test can read them. The driver is as late as a card may be,
// and stricter. A kernel runs only when somebody waits for the card or calls stand_in_run, a copy runs at once, and a
// wrong call fails. (The oracle has another stand-in: PyTorch's allocator asks that one for up to 80 GiB, which are
// only counted.)

#include <cstdint>

extern "C" {

struct StandInCounts {
  std::uint64_t used;  // bytes of the card that have handles
  std::uint64_t used_peak;
  std::uint64_t shown_peak;  // the peak of what is in use, with what stand_in_hold() says
  std::uint64_t handles;
  std::uint64_t mapped;  // pages
  std::uint64_t pinned;  // bytes of host memory
  std::uint64_t waits;   // for all of the card's work
  std::uint64_t copies_out;
};

inline constexpr char kStandInBusId[] = "0000:3B:00.0";

// Sets the sizes of the card and of the host memory that can be locked (1 GiB each before). Nothing may be mapped.
// Undoes what the functions below set, and restarts the peaks and the counts of waits and copies.
void stand_in_reset(std::uint64_t card_bytes, std::uint64_t host_bytes_to_pin);
StandInCounts stand_in_counts();
// Queues a kernel that uses [at, at + size). Unmapping that range before the kernel ran fails. It runs on the waiting
// thread.
void stand_in_launch(void (*kernel)(void*), void* argument, std::uint64_t at, std::uint64_t size);
// stand_in_launched() returns how many kernels were queued so far. stand_in_run() runs them in order until `kernels`
// have run.
std::uint64_t stand_in_launched();
void stand_in_run(std::uint64_t kernels);
// Makes the n-th call from now on that takes or maps memory fail; 0: none.
void stand_in_fail(int call);
// Says how many bytes of the card contexts and other processes hold, in addition to those with handles.
void stand_in_hold(std::uint64_t bytes);
// Makes the card's free bytes unknown until the next reset, as after a kernel's error.
void stand_in_break();
}
