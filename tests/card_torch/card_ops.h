// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ops that give the same bits on the card and on the CPU, forward and backward. Where one op alone shows little, a few
// run in a row.

#include <torch/types.h>

#include <functional>
#include <vector>

namespace card_torch {

using torch::Tensor;

struct Op {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& y)> run;  // both are {2, 4, 6, 6}
};

const std::vector<Op>& differentiable_ops();

}  // namespace card_torch
