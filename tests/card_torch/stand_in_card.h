// SPDX-License-Identifier: Apache-2.0
#pragma once

// A card inside a torch that was built for the CPU alone: device cuda:0, whose bytes are bytes of the host and whose
// ops are the CPU's, run at once, so that a program on it gives the CPU's bits where nothing is drawn. Draws depend on
// seed and offset of the card's generator and on nothing else. What is supported and what is not: README.md.

#include <c10/core/Allocator.h>

#include <cstdint>

namespace card_torch {

// Before anything in the process asks for CUDA and before the first backward; once, further calls do nothing. For good.
void install();

// The allocator that install() registers, one block for each request. Another one takes its place through
// c10::SetAllocator(c10::kCUDA, it, priority > 0); its memory must be readable by the host while an op runs that has it
// as an argument, and at no other time.
c10::Allocator* plain_allocator();

// Since the process began, by all threads.
struct Counts {
  std::uint64_t live_bytes;  // of plain_allocator(), as asked for
  std::uint64_t live_bytes_peak;
  std::uint64_t ops;    // that ran on the CPU for the card
  std::uint64_t draws;  // that they made from generators of the card
  std::uint64_t events_recorded;
  std::uint64_t events_blocked;    // a stream was told to wait for an event
  std::uint64_t synchronizations;  // the host waited for an event, a stream or the whole card
  std::uint64_t streams_recorded;  // Tensor.record_stream
};
Counts counts();

}  // namespace card_torch
