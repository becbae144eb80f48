// SPDX-License-Identifier: Apache-2.0
#pragma once

// A checksum of blocks, to notice bytes that changed on their way; not against anybody's intent.

#include <bit>
#include <cstdint>
#include <cstring>

namespace ullage::store {

// Each word is mixed in by s = rotl(s ^ w, 29) * odd. For a given word that maps sums one to one, and for a given sum
// it maps words one to one: so one changed word always changes the sum, and more do with all but a chance of 2^-64.
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
  std::uint64_t sum_ = 1;  // not zero: zeros would leave it there, however many
};

}  // namespace ullage::store
