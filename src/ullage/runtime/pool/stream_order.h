// SPDX-License-Identifier: Apache-2.0
#pragma once

// PyTorch's rule for memory and streams, kept for a store that knows of none: a block belongs to the stream it was
// taken on, and may be handed to another one only behind the work that was given to the first. The store does not say
// which pages a new block gets, so a stream that takes one waits for each other stream on which anything was freed
// since it last did. The card waits, not the processor; a program of one stream never does.

#include "ullage/base/bytes.h"

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ullage::runtime {

// Of one card. Thread-safe.
class StreamOrder final {
 public:
  explicit StreamOrder(c10::Device device) : device_(device) {}

  // A block was taken by the stream that is current on this thread.
  void taken(Address at);
  // Somebody uses it on another stream too (Tensor.record_stream).
  void used(Address at, const c10::Stream& on);
  // It is given back; told before its bytes can be another's.
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
  std::map<c10::StreamId, std::map<c10::StreamId, std::uint64_t>> seen_;  // the epochs of others that it waited for
};

}  // namespace ullage::runtime
