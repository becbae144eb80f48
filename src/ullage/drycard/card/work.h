// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps a queue of the work that the card was given and may not have finished. Reports errors that would corrupt data
// or crash on a real card. Works only if ULLAGE_DRYCARD_CHECKS is set, to the seed of a random generator. Otherwise all
// work is done at once and nothing is checked.
//
// Work is done in the order of its stream, and as late as possible. It is done when the program waits for it, or when
// more than 1024 pieces (kQueued) are queued on its stream. If the program asks whether it is done (cudaEventQuery),
// the answer is random; "yes" makes it done.
//
// Reported are
//   a launch, a copy, a memset     at an address where no page is mapped, or on bytes that a copy on another stream,
//                                  not ordered before it, may still be writing
//   a copy by the driver's calls   of bytes that work on another stream, not ordered before it, may still use. Torch's
//                                  own copies are the runtime's calls; they may read bytes that a kernel reads
//   an unmap, an unlocking         of pages, or of locked host memory, that queued work uses; also an unmap where
//                                  nothing is mapped
//   a release                      of a page that is not there (cuMemRelease)
//   a map                          of addresses that are mapped already
//   a request                      beyond the card's memory, because a budget should keep the program below it
//
// Findings are written into the ledger. For a launch, every word of its arguments that is an address of the card is
// checked (kernel_arguments.h). An argument says where bytes begin, but not how many there are, so only the page that
// it points to is checked.

#include "ullage/drycard/card/abi.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace ullage::drycard {

bool checks_work();

// Names work of several streams. Key: id of a stream; value: the number of its last piece of work that is included.
using WorkClock = std::map<std::uint64_t, std::uint64_t>;

enum class Calls { Runtime, Driver };

// All of these do nothing without checks.
void give_kernel(const void* stream, const char* name, std::span<const Address> pointers);
void give_copy(const void* stream, Address to, Address from, std::size_t bytes, Calls by);
void give_set(const void* stream, Address to, std::size_t bytes);

void finish_stream(const void* stream);
void finish_all();
void forget_stream(const void* stream);  // its work is finished first
bool is_stream_finished(const void* stream);

// The work that an event waits for if it is recorded on this stream now.
std::shared_ptr<const WorkClock> clock_of(const void* stream);
// Lets the work that the stream gets from now on wait for the work in `clock`.
void order_after(const void* stream, const std::shared_ptr<const WorkClock>& clock);
void finish(const std::shared_ptr<const WorkClock>& clock);
bool is_finished(const std::shared_ptr<const WorkClock>& clock);

// The bytes are about to be unmapped or unlocked by `what`. Reports it if queued work uses them.
void check_unused(Address begin, std::size_t size, const char* what);

void note_finding(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace ullage::drycard
