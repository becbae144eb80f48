// SPDX-License-Identifier: Apache-2.0
#pragma once

// The card's generator, built like CUDA's: a seed, and an offset that each draw advances. What an op draws depends on
// these two alone, so restoring them repeats the numbers.

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>

namespace card_torch {

class CardGenerator final : public c10::GeneratorImpl {
 public:
  explicit CardGenerator(std::uint64_t seed = c10::default_rng_seed_val);

  // Returns a seed for the CPU kernel of one op, made from seed and offset, and advances the offset. Takes the mutex.
  std::uint64_t next_cpu_seed();

  void set_current_seed(std::uint64_t seed) override;  // resets the offset to 0
  std::uint64_t current_seed() const override { return place_->seed; }
  std::uint64_t seed() override;  // takes a new one from the system
  void set_offset(std::uint64_t offset) override;
  std::uint64_t get_offset() const override { return place_->offset; }
  // 16 bytes on the CPU: the seed, then the offset.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // Both generators share one state afterwards, as CUDA graphs need it.
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

// The default generator of cuda:0. Ops that are given no generator draw from it.
const at::Generator& default_generator();

}  // namespace card_torch
