// SPDX-License-Identifier: Apache-2.0
#pragma once

// The card's generator, as CUDA's: a seed, and an offset that each draw moves on. What an op draws is a function of
// both, so who puts them back gets the same numbers again.

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>

namespace card_torch {

class CardGenerator final : public c10::GeneratorImpl {
 public:
  explicit CardGenerator(std::uint64_t seed = c10::default_rng_seed_val);

  // For the CPU kernel of one op: seeded from seed and offset as they stand. The offset then moves on. Takes the mutex.
  std::uint64_t next_cpu_seed();

  void set_current_seed(std::uint64_t seed) override;  // and the offset to 0
  std::uint64_t current_seed() const override { return place_->seed; }
  std::uint64_t seed() override;  // a new one, from the system
  void set_offset(std::uint64_t offset) override;
  std::uint64_t get_offset() const override { return place_->offset; }
  // 16 bytes on the CPU: seed, then offset.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // Shared with the one that is given, or made, as CUDA's graphs do.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

 private:
  struct Place {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
  };

  CardGenerator* clone_impl() const override;

  std::shared_ptr<Place> place_;
};

// Of cuda:0; what ops draw from that are given none.
const at::Generator& default_generator();

}  // namespace card_torch
