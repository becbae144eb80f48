// SPDX-License-Identifier: Apache-2.0
#pragma once

// A hash by which a run recognises an op of a planned step. It covers the op's name, and the types and sizes of the
// tensors that the op receives. A planner computes it from a take, and a run from the call. Both hash only the tensors
// with bytes in the pool, in the order of the arguments.

#include <cstdint>
#include <span>
#include <string_view>

namespace ullage::plan {

class SiteKey final {
 public:
  // "aten::add.Tensor"
  explicit SiteKey(std::string_view op) {
    for (const char c : op) mix(static_cast<unsigned char>(c));
  }
  // `dtype`: c10::ScalarType as a number.
  void add(std::uint8_t dtype, std::span<const std::int64_t> sizes) {
    mix(0x100u + dtype);
    for (const std::int64_t size : sizes) mix(static_cast<std::uint64_t>(size));
  }
  std::uint64_t value() const { return hash_; }

 private:
  // FNV-1a over words. The shift mixes high bits into low ones.
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3ull;
    hash_ ^= hash_ >> 29;
  }
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace ullage::plan
