// SPDX-License-Identifier: Apache-2.0
#include "card_draws.h"

#include "card_generator.h"

namespace card_torch {
namespace {

std::mutex& lending() {
  static std::mutex mutex;
  return mutex;
}

at::CPUGeneratorImpl& cpu_default() { return *at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>(); }

std::uint64_t next_seed(const at::Generator& generator) {
  const at::Generator& from = generator.defined() ? generator : default_generator();
  return from.get<CardGenerator>()->next_cpu_seed();
}

}  // namespace

at::Generator cpu_generator_for(const at::Generator& generator) {
  return at::make_generator<at::CPUGeneratorImpl>(next_seed(generator));
}

DefaultGeneratorLent::DefaultGeneratorLent() : alone_(lending()) {
  const std::uint64_t seed = next_seed({});
  at::CPUGeneratorImpl& generator = cpu_default();
  const std::lock_guard lock(generator.mutex_);
  engine_ = generator.engine();
  float_sample_ = generator.next_float_normal_sample();
  double_sample_ = generator.next_double_normal_sample();
  generator.set_current_seed(seed);
}

DefaultGeneratorLent::~DefaultGeneratorLent() {
  at::CPUGeneratorImpl& generator = cpu_default();
  const std::lock_guard lock(generator.mutex_);
  generator.set_engine(engine_);
  generator.set_next_float_normal_sample(float_sample_);
  generator.set_next_double_normal_sample(double_sample_);
}

}  // namespace card_torch
