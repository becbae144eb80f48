// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an op on the card draws: the CPU's kernel gets a CPU generator seeded from the seed and offset of the card's.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>
#include <optional>

namespace card_torch {

// Returns a CPU generator for the next draw of `generator`, or of the card's default one if `generator` is undefined.
at::Generator cpu_generator_for(const at::Generator& generator);

// While it lives, the CPU's default generator gives the next draw of the card's; used for ops that take no
// generator. Only one lives at a time. Another thread that draws from the CPU's default generator meanwhile draws from
// this one.
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
