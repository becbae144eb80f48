// SPDX-License-Identifier: Apache-2.0
#pragma once

// The optimizers of searches, equal to Python's to the bit. They are those of torch.optim as they run on the CPU (one
// tensor after another). Two more are not in torch, and have the settings of VQGAN-CLIP: DiffGrad (arXiv 1909.11015)
// and AdamP (arXiv 2006.08217). If LibTorch's class rounds differently, Python's order of operations is written out
// here.

#include "program/optimizer_kind.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace ullage::torch_program {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates the tensors, all of which must have gradients, without an autograd graph. From the second step on, ops and
  // sizes are the same in every step, for all values. So a plan of one step fits all.
  virtual void step(double learning_rate) = 0;
};

// The tensors are floats or doubles. Allocates the state here: one to three times the size of the tensors. Sgd has no
// state, and SgdMomentum allocates its own in the first step.
std::unique_ptr<Optimizer> make_optimizer(program::OptimizerKind kind, std::vector<at::Tensor> tensors);

}  // namespace ullage::torch_program
