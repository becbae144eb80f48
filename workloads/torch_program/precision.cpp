// SPDX-License-Identifier: Apache-2.0
#include "torch_program/precision.h"

#include "ullage/runtime/runtime.h"

#include <torch/optim/optimizer.h>

#include <memory>

namespace ullage::torch_program {
namespace {

struct NoOptions final : torch::optim::OptimizerCloneableOptions<NoOptions> {};

// Shows the tensors of a search to a GradScaler as those of one of torch's optimizers.
class Stepping final : public torch::optim::Optimizer {
 public:
  Stepping(ullage::torch_program::Optimizer& optimizer, const std::vector<at::Tensor>& tensors, double learning_rate)
      : torch::optim::Optimizer(tensors, std::make_unique<NoOptions>()),
        optimizer_(optimizer),
        learning_rate_(learning_rate) {}
  at::Tensor step(LossClosure) override {
    optimizer_.step(learning_rate_);
    return {};
  }

 private:
  ullage::torch_program::Optimizer& optimizer_;
  double learning_rate_;
};

}  // namespace

void note(program::Precision precision) {
  if (precision == program::Precision::Fp32) return;
  runtime::changes_results("--precision " + std::string(program::word_of(precision)), "rounding");
}

train::AutocastGuard autocast(program::Precision precision) {
  const bool half = precision == program::Precision::Fp16;
  return train::AutocastGuard(at::kCPU, half ? at::kHalf : at::kBFloat16, precision != program::Precision::Fp32);
}

// Begins far below a GradScaler's 65536: a search is too short to lose its first steps until the scale has fallen.
LossScale::LossScale(program::Precision precision)
    : scaler_(at::kCPU, {.init_scale = 1024, .enabled = precision == program::Precision::Fp16}) {}

Status LossScale::step(Optimizer& optimizer, const std::vector<at::Tensor>& tensors, double learning_rate) {
  if (!scaler_.is_enabled()) {
    optimizer.step(learning_rate);
    return success();
  }
  Stepping stepping(optimizer, tensors, learning_rate);
  scaler_.step(stepping);
  return scaler_.update();
}

}  // namespace ullage::torch_program
