// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps blocks whose owner is gone while another stream may still use them. Each stream has one queue of CUDA events.
// torch keeps these queues in a hash table and walks it in table order. If several streams are done at once, that order
// decides which block is freed first. So the table here has the same layout as torch's: Robin Hood probing and
// Fibonacci hashing of device and stream (c10/util/flat_hash_map.h).

#include "ullage/sim/free_blocks.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace ullage::sim {

class PendingFrees final {
 public:
  // `event_queries`: an event counts as done when it is queried this often, because a model has no card to ask.
  explicit PendingFrees(unsigned event_queries) : event_queries_(event_queries) {}

  bool empty() const { return slots_used_ == 0; }

  // Adds an event of the stream (c10's id) that must be done before the block is free.
  void add(std::uint64_t c10_stream, BlockIndex block);
  // Queries the events of each stream up to the first that is not done. Appends the blocks of the done ones to `done`.
  void poll(std::vector<BlockIndex>& done) { drain(false, done); }
  // Waits for all events and appends their blocks.
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
    int distance = -1;  // from the slot that its hash names; -1: empty
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
  std::vector<Slot> slots_;    // buckets_ + most_steps_ of them
  std::size_t buckets_ = 0;
  int most_steps_ = 3;  // every key is fewer slots than this from the slot that its hash names
  std::size_t slots_used_ = 0;
};

}  // namespace ullage::sim
