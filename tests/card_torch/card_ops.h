// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ops, a few in a row where one alone shows little, that give the same bits on the card and on the CPU, forward and
// backward.

#include <torch/types.h>

#include <functional>
#include <vector>

namespace card_torch {

using torch::Tensor;

struct Op {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& y)> run;  // of {2, 4, 6, 6} each
};

const std::vector<Op>& differentiable_ops();

}  // namespace card_torch
