// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an op on the card draws: the CPU's kernel gets a generator of the CPU seeded from seed and offset of the card's.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>
#include <optional>

namespace card_torch {

// The next draw of `generator`; of the default one of the card where it is undefined.
at::Generator cpu_generator_for(const at::Generator& generator);

// As long as it lives, the CPU's default generator gives the next draw of the card's: for ops that take no generator.
// One at a time; a thread that draws from the CPU's meanwhile would draw from this one.
class DefaultGeneratorLent final {
 public:
  DefaultGeneratorLent();
  ~DefaultGeneratorLent();
  DefaultGeneratorLent(const DefaultGeneratorLent&) = delete;
  DefaultGeneratorLent& operator=(const DefaultGeneratorLent&) = delete;

 private:
  std::unique_lock<std::mutex> alone_;
  at::mt19937 engine_;
  std::optional<float> float_sample_;
  std::optional<double> double_sample_;
};

}  // namespace card_torch
