// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <mutex>
#include <stdexcept>

namespace nets {
namespace {

using torch::optim::OptimizerParamState;

Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void digest_state(Digest& digest, const std::string& name, const OptimizerParamState& state) {
  if (const auto* adam = dynamic_cast<const torch::optim::AdamParamState*>(&state)) {
    digest.add(name + "/exp_avg", adam->exp_avg());
    digest.add(name + "/exp_avg_sq", adam->exp_avg_sq());
    digest.add(name + "/step " + std::to_string(adam->step()) + '\n');
  } else if (const auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(&state)) {
    digest.add(name + "/momentum_buffer", sgd->momentum_buffer());
  } else {
    throw std::logic_error("an optimizer whose state nobody digests");
  }
}

}  // namespace

void Training::add_part(std::string name, std::function<void(Digest&)> digest) {
  parts_.emplace_back(std::move(name), std::move(digest));
}

void Training::add_model(const std::string& name, std::shared_ptr<nn::Module> model) {
  add_part(name + "/parameters", [model](Digest& digest) {
    for (const auto& item : model->named_parameters()) digest.add(item.key(), item.value());
  });
  add_part(name + "/buffers", [model](Digest& digest) {
    for (const auto& item : model->named_buffers()) digest.add(item.key(), item.value());
  });
  add_part(name + "/gradients", [model](Digest& digest) {
    for (const auto& item : model->named_parameters()) digest.add(item.key(), item.value().grad());
  });
}

void Training::add_optimizer(const std::string& name, std::shared_ptr<nn::Module> model,
                             std::shared_ptr<torch::optim::Optimizer> optimizer) {
  add_part(name, [model, optimizer](Digest& digest) {
    for (const auto& item : model->named_parameters()) {
      const auto found = optimizer->state().find(item.value().unsafeGetTensorImpl());
      if (found != optimizer->state().end()) digest_state(digest, item.key(), *found->second);
    }
  });
}

void Training::add_tensor(const std::string& name, std::function<Tensor()> tensor) {
  add_part(name, [name, tensor](Digest& digest) { digest.add(name, tensor()); });
}

std::vector<std::pair<std::string, std::string>> Training::digests() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [name, feed] : parts_) {
    Digest digest;
    feed(digest);
    found.emplace_back(name, digest.finish());
  }
  Digest digest;
  digest.add("generator", generator_state());
  found.emplace_back("generator", digest.finish());
  return found;
}

}  // namespace nets
