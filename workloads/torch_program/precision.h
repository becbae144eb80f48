// SPDX-License-Identifier: Apache-2.0
#pragma once

// How `--precision` is carried out: forward passes under autocast on the CPU, and in float16 a scale on the loss of a
// search. Training loops on torch's optimizers use train::GradScaler directly.

#include "program/precision.h"
#include "torch_program/optimizer.h"
#include "ullage/train/autocast_guard.h"
#include "ullage/train/grad_scaler.h"

#include <vector>

namespace ullage::torch_program {

// Says in a recording that the layers run in another type than float32.
void note(program::Precision precision);

// Autocast for a forward pass; does nothing for Fp32.
train::AutocastGuard autocast(program::Precision precision);

// The loss scale of a search in float16. In the other precisions it does nothing.
class LossScale final {
 public:
  explicit LossScale(program::Precision precision);

  // Returns `loss` times the scale: call backward on it.
  at::Tensor scale(const at::Tensor& loss) { return scaler_.scale(loss); }
  // Divides the gradients of `tensors`, which are those that `optimizer` updates, by the scale. Steps unless one of
  // them is inf or nan, then updates the scale. Returns what GradScaler::update() said.
  Status step(Optimizer& optimizer, const std::vector<at::Tensor>& tensors, double learning_rate);

 private:
  train::GradScaler scaler_;
};

}  // namespace ullage::torch_program
