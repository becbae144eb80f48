// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the card was given to do and may not have done yet, and what a real card would not forgive. Only if
// ULLAGE_DRYCARD_CHECKS is set, to the seed of a generator; else all work is done at once and nothing is checked.
//
// Work is done in the order of its stream, and as late as it may: at the latest when the program waits for it, or when
// more than kQueued pieces of it are queued. A question (cudaEventQuery) finds it done or not, at random.
//
//   a launch, a copy or a memset   with an address of a page that is not mapped; on bytes that a copy on another
//   stream,
//                                  not ordered before it, is still bringing
//   a copy by the driver's calls   of bytes that work on another stream, not ordered before it, may still use. Torch
//                                  copies by the runtime's calls; its own may read what a kernel reads
//   an unmap, a release            of pages, or of locked host memory, that queued work uses
//   a map                          over another
//   a request                      beyond the card's memory: a budget is to keep the program below it
//
// What is found is written into the ledger. Of a launch all words of its arguments are looked at that are addresses of
// the card (kernel_arguments.h). An argument says where bytes begin and not how many they are, so the page that it
// points to stands for all of them.

#include "ullage/drycard/card/abi.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace ullage::drycard {

bool checks_work();

// How far the streams are, by their ids: work with these numbers and all before it.
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

// Of an event: what is ordered before its recording.
std::shared_ptr<const WorkClock> clock_of(const void* stream);
void order_after(const void* stream, const std::shared_ptr<const WorkClock>& clock);
void finish(const std::shared_ptr<const WorkClock>& clock);
bool is_finished(const std::shared_ptr<const WorkClock>& clock);

// The bytes are about to be unmapped, released or unlocked by the function `what`.
void check_unused(Address begin, std::size_t size, const char* what);

void note_finding(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace ullage::drycard
