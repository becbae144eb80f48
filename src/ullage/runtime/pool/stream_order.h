// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps PyTorch's rule for memory and streams, for a store that knows no streams. A block belongs to the stream it was
// allocated on. Another stream may get it only when the work that was given to its stream is done. The store does not
// say which pages a new block gets. So a stream that allocates waits for other streams: for each on which a block was
// freed since the last wait for it. The card waits, not the processor. A program with one stream never waits.

#include "ullage/base/bytes.h"

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ullage::runtime {

// The streams of one card. Thread-safe.
class StreamOrder final {
 public:
  explicit StreamOrder(c10::Device device) : device_(device) {}

  // The stream that is current on this thread has allocated the block at `at`.
  void taken(Address at);
  // The block is used on another stream too (Tensor.record_stream).
  void used(Address at, const c10::Stream& on);
  // The block is freed. Call it before another block can get its bytes.
  void freed(Address at);

 private:
  struct Freed {
    c10::Stream stream;
    std::uint64_t epoch;  // how many blocks were freed on it
  };
  const c10::Device device_;
  std::mutex lock_;
  std::unordered_map<std::uint64_t, std::vector<c10::Stream>> users_;  // by address
  std::map<c10::StreamId, Freed> freed_;
  std::map<c10::StreamId, std::map<c10::StreamId, std::uint64_t>> seen_;  // epochs of others that a stream waited for
};

}  // namespace ullage::runtime
