// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/kept_generator.h"

#include "ullage/runtime/ops/op_info.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>

namespace ullage::runtime {
namespace {

at::Generator copy_of(const at::Generator& generator) {
  at::Generator source = generator;  // another handle of the same generator, because mutex() is not const
  const std::lock_guard lock(source.mutex());
  return source.clone();
}

// Makes `to` draw the numbers that `from` would draw. On the CPU it copies the state. On a card both share one state
// afterwards, as with CUDA graphs, because setting the seed again would reset the state that cuDNN keeps for recurrent
// layers.
void put(const at::Generator& from, at::Generator& to) {
  const std::lock_guard lock(to.mutex());
  if (!to.device().is_cpu()) {
    to.graphsafe_set_state(from);
    return;
  }
  auto& source = *at::check_generator<at::CPUGeneratorImpl>(from);
  auto& target = *at::check_generator<at::CPUGeneratorImpl>(to);
  target.set_engine(source.engine());
  target.set_next_float_normal_sample(source.next_float_normal_sample());
  target.set_next_double_normal_sample(source.next_double_normal_sample());
}

at::Generator as_it_is(const at::Generator& generator) {
  return generator.device().is_cpu() ? copy_of(generator) : generator.graphsafe_get_state();
}

}  // namespace

at::Generator default_generator() { return at::globalContext().defaultGenerator(followed_device()); }

KeptGenerator::KeptGenerator(const at::Generator& drawn_from) : kept_(copy_of(drawn_from)) {}

at::Generator KeptGenerator::again() const { return copy_of(kept_); }

KeptGenerator::InPlace::InPlace(const KeptGenerator& kept) : default_(default_generator()), now_(as_it_is(default_)) {
  put(kept.again(), default_);
}

KeptGenerator::InPlace::~InPlace() { put(now_, default_); }

}  // namespace ullage::runtime
