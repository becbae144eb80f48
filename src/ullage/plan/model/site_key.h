// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an op of a step is known again when the next step runs it: by its name and by the types and sizes of the tensors
// it receives. Worked out alike from a take and, while a program runs, from the call: only tensors with bytes in the
// pool count, in the order of the arguments.

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
  // FNV-1a over words, with a turn so that high bits count too.
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3ull;
    hash_ ^= hash_ >> 29;
  }
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace ullage::plan
