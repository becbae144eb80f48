// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random numbers that are the same with every compiler and library, because recordings depend on them. A change here
// changes all cases, so every version of torch must be recorded anew.

#include <cstddef>
#include <cstdint>

namespace ullage::oracle {

class Random final {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Returns a number in [0, bound). The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(std::uint64_t in_ten_thousand) { return below(10'000) < in_ten_thousand; }

  template <class List>
  auto pick(const List& list) {
    return list[static_cast<std::size_t>(below(list.size()))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace ullage::oracle
