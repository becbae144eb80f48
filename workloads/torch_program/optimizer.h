// SPDX-License-Identifier: Apache-2.0
#pragma once

// The optimizers of searches, equal to Python's to the bit: those of torch.optim as they are on the CPU (one tensor
// after another), and two that torch has not, DiffGrad (arXiv 1909.11015) and AdamP (arXiv 2006.08217), at the settings
// of VQGAN-CLIP. Where LibTorch's class rounds otherwise, the order of operations of Python is written out.

#include "program/optimizer_kind.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace ullage::torch_program {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Changes the tensors by their gradients, which all have. Within no graph. From the second step on the ops and their
  // sizes are those of every step, whatever the values are, so that a plan of one holds for all.
  virtual void step(double learning_rate) = 0;
};

// Floats or doubles. The state is made here, one to three times the size of the tensors; Sgd has none, and that of
// SgdMomentum comes with the first step.
std::unique_ptr<Optimizer> make_optimizer(program::OptimizerKind kind, std::vector<at::Tensor> tensors);

}  // namespace ullage::torch_program
