// SPDX-License-Identifier: Apache-2.0
#include "torch_program/optimizer.h"

#include "ullage/base/check.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/sgd.h>

#include <array>
#include <cmath>
#include <utility>

namespace ullage::torch_program {
namespace {

using at::Tensor;

constexpr double kMomentum = 0.9;
constexpr double kAnyRate = 1;  // every step sets its own
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;

// LibTorch's SGD equals Python's to the bit.
class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Tensor> tensors, double momentum)
      : optim_(std::move(tensors), torch::optim::SGDOptions(kAnyRate).momentum(momentum)) {}

  void step(double learning_rate) override {
    optim_.param_groups().front().options().set_lr(learning_rate);
    optim_.step();
  }

 private:
  torch::optim::SGD optim_;
};

// One step of one tensor. Its state begins as zeros; each optimizer decides how many states it uses and what they mean.
struct Change {
  const Tensor& x;
  const Tensor& gradient;
  std::array<Tensor, 3>& state;
  double steps;  // including this one
  double rate;

  // 1 - beta^steps: the factor by which a mean that began at zero is too small.
  double correction(double beta) const { return 1 - std::pow(beta, steps); }
};

// The order of operations below is that of torch/optim/*.py, _single_tensor_*. It matters: a**0.5 and sqrt(a) differ in
// bits, and so do tensor * (1 / a) and tensor / a.

void move_means(const Change& c) {
  c.state[0].lerp_(c.gradient, 1 - kBeta1);
  c.state[1].mul_(kBeta2).addcmul_(c.gradient, c.gradient, 1 - kBeta2);
}

void adam(const Change& c) {
  move_means(c);
  const Tensor root = c.state[1].sqrt().div_(std::pow(c.correction(kBeta2), 0.5)).add_(kEps);
  c.x.addcdiv_(c.state[0], root, -(c.rate / c.correction(kBeta1)));
}

void adam_w(const Change& c) {
  constexpr double kDecay = 1e-2;
  c.x.mul_(1 - c.rate * kDecay);
  adam(c);
}

void adagrad(const Change& c) {
  constexpr double kAdagradEps = 1e-10;
  c.state[0].addcmul_(c.gradient, c.gradient, 1);
  c.x.addcdiv_(c.gradient, c.state[0].sqrt().add_(kAdagradEps), -c.rate);
}

// Adam with a decaying maximum of gradients in place of the mean of squares (arXiv 1412.6980, algorithm 2).
void adamax(const Change& c) {
  auto& [mean, largest, unused] = c.state;
  mean.lerp_(c.gradient, 1 - kBeta1);
  at::maximum_out(largest, largest.mul_(kBeta2), c.gradient.abs().add_(kEps));
  c.x.addcdiv_(mean, largest, -(c.rate / c.correction(kBeta1)));
}

void r_adam(const Change& c) {
  move_means(c);
  const double correction2 = c.correction(kBeta2);
  const double longest = 2 / (1 - kBeta2) - 1;
  const double length = longest - 2 * c.steps * std::pow(kBeta2, c.steps) / correction2;
  const bool rectified = length > 5;  // the first steps use the mean alone
  const double rectification =
      std::pow((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length), 0.5);
  // Both cases run the same ops: * 1 and + 0 change no bit.
  Tensor adaptive = c.state[1].sqrt().add_(kEps).reciprocal_();
  adaptive.mul_(rectified ? std::pow(correction2, 0.5) : 0).add_(rectified ? 0 : 1);
  const Tensor change =
      c.state[0].div(c.correction(kBeta1)).mul_(c.rate).mul_(adaptive).mul_(rectified ? rectification : 1);
  c.x.add_(change, -1);
}

void rms_prop(const Change& c) {
  constexpr double kAlpha = 0.99;
  c.state[0].mul_(kAlpha).addcmul_(c.gradient, c.gradient, 1 - kAlpha);
  c.x.addcdiv_(c.gradient, c.state[0].sqrt().add_(kEps), -c.rate);
}

// DiffGrad and AdamP follow the order of operations of tests/vqgan_clip/reference/optimizers.py.

void move_means_by_sums(const Change& c, const Tensor& gradient) {
  c.state[0].mul_(kBeta1).add_(gradient * (1 - kBeta1));
  c.state[1].mul_(kBeta2).add_(gradient.pow(2).mul_(1 - kBeta2));
}

// Adam whose step is damped for elements whose gradient changes little.
void diff_grad(const Change& c) {
  constexpr double kDiffGradEps = 1e-9, kDecay = 1e-9;
  const Tensor gradient = c.gradient + c.x * kDecay;
  move_means_by_sums(c, gradient);
  auto& [mean, square, before] = c.state;
  const Tensor damped = before.sub(gradient).abs_().sigmoid_().mul_(mean);
  before.copy_(gradient);
  const double rate = c.rate * std::sqrt(c.correction(kBeta2)) / c.correction(kBeta1);
  c.x.sub_(damped.mul(rate).div_(square.sqrt().add_(kDiffGradEps)));
}

// Returns `step` without its component along x, for each of `rows` parts, if gradient and x are nearly perpendicular in
// all parts; otherwise returns `otherwise`. Both cases run the same ops.
Tensor projected(const Change& c, const Tensor& step, std::int64_t rows, const Tensor& otherwise) {
  constexpr double kDelta = 0.1;
  constexpr std::int64_t kAlongRows[] = {1};
  const Tensor gradient = c.gradient.reshape({rows, -1}), x = c.x.reshape({rows, -1}), flat = step.reshape({rows, -1});
  const Tensor length = at::linalg_vector_norm(x, 2, kAlongRows).add_(kEps);
  const Tensor cosine =
      (gradient * x).sum(1).abs_() / at::linalg_vector_norm(gradient, 2, kAlongRows).add_(kEps) / length;
  const Tensor perpendicular = cosine.max() < kDelta / std::sqrt(static_cast<double>(x.size(1)));
  const Tensor unit = x / length.unsqueeze(1);
  const Tensor across = flat - unit * (unit * flat).sum(1, /*keepdim=*/true);
  return at::where(perpendicular, across.view(c.x.sizes()), otherwise);
}

// Adam that does not lengthen x: it projects each row or, if the rows are not perpendicular to their gradients, x as a
// whole.
void adam_p(const Change& c) {
  move_means_by_sums(c, c.gradient);
  const Tensor root = c.state[1].sqrt().div_(std::sqrt(c.correction(kBeta2))).add_(kEps);
  Tensor step = c.state[0] / root;
  if (c.x.dim() > 1) {
    const Tensor whole = projected(c, step, 1, step);
    step = c.x.size(0) == 1 ? whole : projected(c, step, c.x.size(0), whole);
  }
  c.x.sub_(step.mul_(c.rate / c.correction(kBeta1)));
}

class WrittenOut final : public Optimizer {
 public:
  WrittenOut(void (*change)(const Change&), std::size_t states, std::vector<Tensor> tensors)
      : change_(change), tensors_(std::move(tensors)), states_(tensors_.size()) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      for (std::size_t k = 0; k < states; ++k) states_[i][k] = at::zeros_like(tensors_[i].detach());
    }
  }

  void step(double learning_rate) override {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      change_({tensors_[i], tensors_[i].grad(), states_[i], steps_, learning_rate});
    }
  }

 private:
  void (*change_)(const Change&);
  std::vector<Tensor> tensors_;
  std::vector<std::array<Tensor, 3>> states_;
  double steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(program::OptimizerKind kind, std::vector<Tensor> tensors) {
  using Kind = program::OptimizerKind;
  const auto written_out = [&tensors](void (*change)(const Change&), std::size_t states) {
    return std::make_unique<WrittenOut>(change, states, std::move(tensors));
  };
  switch (kind) {
    case Kind::Adam:
      return written_out(adam, 2);
    case Kind::AdamW:
      return written_out(adam_w, 2);
    case Kind::Adagrad:
      return written_out(adagrad, 1);
    case Kind::Adamax:
      return written_out(adamax, 2);
    case Kind::DiffGrad:
      return written_out(diff_grad, 3);
    case Kind::AdamP:
      return written_out(adam_p, 2);
    case Kind::RAdam:
      return written_out(r_adam, 2);
    case Kind::RmsProp:
      return written_out(rms_prop, 1);
    case Kind::Sgd:
      return std::make_unique<Sgd>(std::move(tensors), 0);
    case Kind::SgdMomentum:
      return std::make_unique<Sgd>(std::move(tensors), kMomentum);
  }
  contract_broken("unknown OptimizerKind", __FILE__, __LINE__);
}

}  // namespace ullage::torch_program
