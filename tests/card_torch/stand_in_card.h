// SPDX-License-Identifier: Apache-2.0
#pragma once

// A card inside a CPU build of torch: device cuda:0, whose memory is the host's and whose ops are the CPU's. An op has
// finished when its call returns. A program that draws nothing gives the CPU's bits. Draws depend only on the seed and
// offset of the card's generator. README.md says what is supported and what is not.

#include <c10/core/Allocator.h>

#include <cstdint>

namespace card_torch {

// Call it before anything in the process asks for CUDA and before the first backward. Later calls have no effect. It
// cannot be undone.
void install();

// The allocator that install() registers; it makes one block for each request. Another one can replace it through
// c10::SetAllocator(c10::kCUDA, it, priority > 0). The host must be able to read and write a block while an op runs
// that has it as an argument or that allocated it. At no other time is it touched.
c10::Allocator* plain_allocator();

// Counted since the process began, for all threads.
struct Counts {
  std::uint64_t live_bytes;  // allocated from plain_allocator(), as requested
  std::uint64_t live_bytes_peak;
  std::uint64_t ops;    // run by the CPU's kernels
  std::uint64_t draws;  // ops that drew from a generator of the card
  std::uint64_t events_recorded;
  std::uint64_t events_blocked;    // a stream was made to wait for an event
  std::uint64_t synchronizations;  // the host waited for an event, a stream or the whole card
  std::uint64_t streams_recorded;  // Tensor.record_stream
};
Counts counts();

}  // namespace card_torch
