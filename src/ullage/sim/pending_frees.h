// SPDX-License-Identifier: Apache-2.0
#pragma once

// Blocks whose owner is gone while another stream may still use them: a queue of events for each stream. torch keeps
// these queues in a hash table and walks it in the table's order, which decides what is freed first when several
// streams are done at once, and so the order of events. The table here is laid out as that one (Robin Hood probing,
// Fibonacci hashing of device and stream; c10/util/flat_hash_map.h) for that reason alone.

#include "ullage/sim/free_blocks.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace ullage::sim {

class PendingFrees final {
 public:
  explicit PendingFrees(unsigned event_queries) : event_queries_(event_queries) {}

  bool empty() const { return slots_used_ == 0; }

  // An event of the stream (by c10's id) that must be done before the block is free.
  void add(std::uint64_t c10_stream, BlockIndex block);
  // Asks the events of each stream, up to the first that is not done; those done are appended to `done`.
  void poll(std::vector<BlockIndex>& done) { drain(false, done); }
  // Waits for all.
  void wait(std::vector<BlockIndex>& done) { drain(true, done); }

 private:
  struct Event {
    BlockIndex block = 0;
    unsigned queries = 0;
  };
  struct Queue {
    std::uint64_t c10_stream = 0;
    std::deque<Event> events;
  };
  struct Slot {
    int distance = -1;  // from where the hash wants it; -1: empty
    std::size_t queue = 0;
  };

  std::size_t wanted_slot(std::size_t queue) const;
  std::size_t queue_of(std::uint64_t c10_stream);
  void place(std::size_t queue);
  void grow(std::size_t queue);
  void erase(std::size_t at);
  void drain(bool all, std::vector<BlockIndex>& done);

  const unsigned event_queries_;
  std::vector<Queue> queues_;  // one for each stream ever seen
  std::vector<Slot> slots_;    // buckets_, and as many again as a key may stand off its place
  std::size_t buckets_ = 0;
  int most_steps_ = 3;  // a key stands less than so many slots off its place
  std::size_t slots_used_ = 0;
};

}  // namespace ullage::sim
