// SPDX-License-Identifier: Apache-2.0
#pragma once

// Streams and events of a card on which everything is done at once, and the capture of graphs. A captured stream only
// counts what it would have done.

#include "ullage/drycard/card/abi.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ullage::drycard {

struct Graph {
  std::uint64_t nodes = 0;
  std::uint64_t launches = 0;  // of the nodes, kernels
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
  std::shared_ptr<Capture> capture;  // that it is part of, or was
};

struct Event {
  int card = 0;
  unsigned flags = 0;
  std::uint64_t recorded_ns = 0;  // on the host's clock; 0: never
  std::shared_ptr<Capture> capture;
};

// Something was put into the stream; `kernels` of it were kernels. Counts for the ledger, or for the graph that is
// being captured there.
void note_work(const void* stream, std::uint64_t kernels);

// A function of a library on top ran on the stream that its handle has, which is not known here: it counts as one
// kernel, of the capture that began last where one is active.
void note_library_work();

// The capture that the stream is part of and that has not ended; null: none.
std::shared_ptr<Capture> active_capture(const void* stream);

}  // namespace ullage::drycard
