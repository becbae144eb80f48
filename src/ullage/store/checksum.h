// SPDX-License-Identifier: Apache-2.0
#pragma once

// A checksum that detects bytes changed by accident between memory and disk. It does not protect against intent.

#include <bit>
#include <cstdint>
#include <cstring>

namespace ullage::store {

// Mixes each word w into the sum s by s = rotl(s ^ w, 29) * odd. For a given w this maps s one to one, and for a given
// s it maps w one to one. So one changed word always changes the sum. Several changed words leave it unchanged with a
// chance of 2^-64.
// (Multiplier: Steele and Vigna, "Computationally easy, spectrally good multipliers", 2021.)
class Checksum final {
 public:
  // `size` is a multiple of 8 bytes.
  void add(const char* bytes, std::uint64_t size) {
    for (std::uint64_t i = 0; i < size; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i, sizeof word);
      sum_ = std::rotl(sum_ ^ word, 29) * 0xd1342543de82ef95u;
    }
  }

  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 1;  // not zero, since words of zero leave a sum of zero unchanged, however many come
};

}  // namespace ullage::store
