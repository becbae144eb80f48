// SPDX-License-Identifier: Apache-2.0
#include "random_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <utility>

namespace random_program {

namespace nn = torch::nn;

namespace {

constexpr std::size_t kStates = 3;

Tensor generator_state(at::Generator generator) { return generator.get_state(); }

at::Generator new_generator(torch::Device device, std::uint64_t seed) {
  if (device.is_cpu()) return at::make_generator<at::CPUGeneratorImpl>(seed);
  at::Generator made = at::globalContext().getAcceleratorHooksInterface(device.type()).getNewGenerator();
  made.set_current_seed(seed);
  return made;
}

}  // namespace

RandomTraining::RandomTraining(std::uint64_t seed, std::uint64_t ops, torch::Device device)
    : seed_(seed), ops_(ops), device_(device), random_(seed) {
  const auto one_of = [&](std::initializer_list<std::int64_t> some) { return some.begin()[random_() % some.size()]; };
  // Even a mask of the smallest value, one byte for each number, has 64 KiB and so its own pages. Smaller blocks share
  // pages, which a plan does not predict to the byte.
  sizes_ = {one_of({8, 10}), one_of({16, 20}), 48};
  generator_ = new_generator(device_, seed);
  make_parameters();
  add_model("model", model_);
  const std::uint64_t how = random_() % 3;
  if (how == 0) {
    optimizer_ = std::make_shared<torch::optim::Adam>(model_->parameters(), torch::optim::AdamOptions(1e-3));
  } else if (how == 1) {
    optimizer_ =
        std::make_shared<torch::optim::SGD>(model_->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
  }
  if (optimizer_ != nullptr) add_optimizer("optimizer", model_, optimizer_);
  const auto add = [this](std::vector<Tensor>& to, const char* name, const Tensor& tensor) {
    to.push_back(tensor);
    add_tensor(name + std::to_string(to.size()), [tensor] { return tensor; });
  };
  for (std::size_t i = 0; i < kStates; ++i) add(state_, "state", blank(static_cast<Kind>(i)).normal_());
  if (optimizer_ == nullptr) {
    for (const Tensor& parameter : model_->parameters()) add(momenta_, "momentum", torch::zeros_like(parameter));
  }
  add_tensor("own generator", [this] { return generator_state(generator_); });
  add_tensor("device's generator", [this] { return generator_state(at::globalContext().defaultGenerator(device_)); });
}

void RandomTraining::make_parameters() {
  model_ = std::make_shared<nn::Module>("random");
  const auto parameter = [&](const char* name, at::IntArrayRef sizes, double scale) {
    return model_->register_parameter(name, torch::randn(sizes).to(device_) * scale);
  };
  const std::int64_t c = sizes_.channels;
  weight3_ = parameter("weight3", {c, c, 3, 3}, 0.1);
  weight1_ = parameter("weight1", {c / 2, c / 2, 1, 1}, 0.3);
  each_channel_ = parameter("each_channel", {c, 1, 3, 3}, 0.3);
  // This one is larger than 64 KiB, so that a plan may move it.
  linear_ = parameter("linear", {sizes_.side * sizes_.side, sizes_.side}, 0.02);
  bias_ = parameter("bias", {c}, 0.1);
  scale_ = parameter("scale", {c}, 1.0);
  shift_ = parameter("shift", {c}, 0.1);
  mean_ = model_->register_buffer("mean", torch::zeros({c}, device_));
  variance_ = model_->register_buffer("variance", torch::ones({c}, device_));
}

Tensor RandomTraining::blank(Kind kind, torch::Device device) const {
  const std::int64_t side = kind == Kind::Small ? sizes_.side / 2 : sizes_.side;
  return torch::empty({sizes_.batch, kind == Kind::Half ? sizes_.channels / 2 : sizes_.channels, side, side}, device);
}

void RandomTraining::begin_values() {
  random_.seed(seed_);
  values_ = std::make_unique<Values>(random_, 2 + random_() % 6);
  for (const Kind kind : {Kind::Full, Kind::Half, Kind::Small}) {
    values_->put(blank(kind).normal_(), kind);
    values_->put(state_[static_cast<std::size_t>(kind)].tanh(), kind);
  }
}

double RandomTraining::step() {
  begin_values();
  const bool none = values_->chance(50);
  if (optimizer_ != nullptr) {
    optimizer_->zero_grad(/*set_to_none=*/none);
  } else {
    for (const Tensor& parameter : model_->parameters()) parameter.mutable_grad() = Tensor();
  }
  {
    const torch::NoGradGuard unwatched;
    for (std::uint64_t i = 0; i < ops_ / 8; ++i) any_op(false);
  }
  values_->fix_views();
  for (std::uint64_t i = 0; i < ops_ * 7 / 8; ++i) {
    if (i == ops_ / 2) late_.clear();
    any_op(true);
  }
  const Tensor total = loss();
  total.backward();
  update();
  carry_over();
  return total.item<double>() + std::exchange(said_, 0);
}

// Depends on every remaining value, and on all parameters, because some may not have been used by any op.
Tensor RandomTraining::loss() {
  Tensor sum = bias_.sum() * 0;
  for (const Tensor& parameter : model_->parameters()) sum = sum + parameter.pow(2).mean() * 0.01;
  for (const Value& value : values_->all()) sum = sum + value.tensor.sin().mean();
  if (!values_->means().empty()) sum = sum + torch::stack(values_->means()).sum();
  return sum;
}

void RandomTraining::update() {
  const torch::NoGradGuard unwatched;
  if (optimizer_ != nullptr) {
    optimizer_->step();
    return;
  }
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : model_->parameters()) gradients.push_back(parameter.grad());
  std::vector<Tensor> parameters = model_->parameters();
  at::_foreach_mul_(momenta_, 0.9);
  at::_foreach_add_(momenta_, gradients, 1.0);
  at::_foreach_add_(parameters, momenta_, -0.01);
}

void RandomTraining::carry_over() {
  const torch::NoGradGuard unwatched;
  for (const Kind kind : {Kind::Full, Kind::Half, Kind::Small}) {
    state_[static_cast<std::size_t>(kind)].copy_(values_->any(kind).tensor);
    late_.push_back(values_->any(kind));
    late_.back().tensor = late_.back().tensor.detach();
  }
  values_.reset();
}

}  // namespace random_program
