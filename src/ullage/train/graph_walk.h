// SPDX-License-Identifier: Apache-2.0
#pragma once

// Visits the autograd graph of a tensor. Accumulation finds in it the layers that forward() calls as functions, which
// no module shows. GradScaler finds in it the types in which the forward pass computed.

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <unordered_set>
#include <vector>

namespace ullage::train {

// Calls `see(node)` once for each node that backward from `root` could reach, until `see` returns false.
template <class See>
void for_each_node(const at::Tensor& root, See see) {
  std::vector<const torch::autograd::Node*> todo;
  std::unordered_set<const torch::autograd::Node*> seen;
  const auto add = [&](const torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) todo.push_back(node);
  };
  const auto first = root.grad_fn();
  add(first.get());
  while (!todo.empty()) {
    const torch::autograd::Node& node = *todo.back();
    todo.pop_back();
    if (!see(node)) return;
    for (const torch::autograd::Edge& edge : node.next_edges()) add(edge.function.get());
  }
}

}  // namespace ullage::train
