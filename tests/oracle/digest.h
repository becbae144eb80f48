// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sequence of events as a few numbers: a running hash that is noted every thousand events. With it two sequences can
// be compared, and their first difference located to within a thousand events, without keeping either sequence.

#include "exchange.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::oracle {

class Digest final {
 public:
  static constexpr std::uint64_t kChunk = 1000;

  void add(const SeenEvent& event) {
    mix(event.address);
    mix(event.bytes);
    mix(std::uint64_t{event.operation} << 16 | static_cast<std::uint64_t>(event.action) << 8 | event.stream);
    if (++events_ % kChunk == 0) chunks_.push_back(static_cast<std::uint32_t>(hash_ >> 32));
  }
  void add(const Operation& operation) {
    mix(operation.bytes);
    mix(std::uint64_t{operation.block} << 16 | static_cast<std::uint64_t>(operation.kind) << 8 | operation.stream);
  }

  std::uint64_t events() const { return events_; }
  std::uint64_t hash() const { return hash_; }
  // The upper half of the hash after the first thousand events, the first two thousand, and so on.
  const std::vector<std::uint32_t>& chunks() const { return chunks_; }

 private:
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15;  // an odd factor is invertible, so no information is lost
    hash_ ^= hash_ >> 29;
  }

  std::uint64_t hash_ = 0x756c6c616765;
  std::uint64_t events_ = 0;
  std::vector<std::uint32_t> chunks_;
};

inline Digest digest_of(const std::vector<SeenEvent>& events) {
  Digest digest;
  for (const SeenEvent& event : events) digest.add(event);
  return digest;
}

inline Digest digest_of(const std::vector<Operation>& operations) {
  Digest digest;
  for (const Operation& operation : operations) digest.add(operation);
  return digest;
}

}  // namespace ullage::oracle
