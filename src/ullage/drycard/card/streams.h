// SPDX-License-Identifier: Apache-2.0
#pragma once

// Streams and events, and the capture of CUDA graphs. The card does everything at once; with checks, work stays pending
// for a while (work.h). A stream that is being captured only counts what it would have done.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/work.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ullage::drycard {

struct Graph {
  std::uint64_t nodes = 0;
  std::uint64_t launches = 0;  // how many of the nodes are kernels
};

struct Capture {
  bool active = true;
  std::uint64_t id = 0;
  Graph* graph = nullptr;
};

struct Stream {
  int card = 0;
  int priority = 0;
  unsigned flags = 0;
  std::uint64_t id = 0;
  std::shared_ptr<Capture> capture;  // the capture that it is or was part of; null: none
};

// The clock of events counts what was put into all streams, one tick for a kernel or an event. So a program that
// chooses by times, as cuDNN's benchmark does, chooses the same in every run.
struct Event {
  int card = 0;
  unsigned flags = 0;
  std::uint64_t recorded = 0;  // ticks; 0: never recorded
  std::shared_ptr<Capture> capture;
  std::shared_ptr<const WorkClock> before;  // with checks: the work before it
};

// Counts work that was put into the stream, `kernels` of it kernels. It counts for the graph if the stream is being
// captured, else for the ledger.
void note_work(const void* stream, std::uint64_t kernels);

// Counts one kernel for a function of a library such as cuDNN. The library's handle has the stream, but the handle
// cannot be read here. If a capture is active, the kernel counts for the capture that began last; it counts nowhere if
// that one has ended.
void note_library_work();

// Returns the active capture that the stream is part of; null if there is none.
std::shared_ptr<Capture> active_capture(const void* stream);

}  // namespace ullage::drycard
