// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ops over lists of tensors (`_foreach_*`, fused optimizers) as a row of smaller ones: what must be in memory at once
// is then one slice and not, say, every parameter with both its moments. Only where each element is computed on its
// own, so that the result is the same bit by bit.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace ullage::runtime {

// How an op is cut; made once per operator from its schema.
struct ListOp {
  std::vector<std::size_t> lists;      // positions of arguments with one value per tensor, where they are not empty
  std::optional<std::size_t> scalars;  // position of a 1-D tensor with one number per tensor
  bool returns_list = false;           // else nothing

  // Nothing for an op that is no list op, or whose elements depend on one another.
  static std::optional<ListOp> of(const c10::OperatorHandle& op);
};

// Elements of the call whose arguments are the last on the stack; zero or one: it cannot be cut. Zero too where the
// lists differ in length: the op itself then says so.
std::size_t list_length(const ListOp& list_op, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Replaces the arguments on the stack by the outputs: runs both halves through the op's front door, so that the
// interceptor sees each and cuts further what still does not fit. After an exception the first slices are done.
void run_in_halves(const ListOp& list_op, const c10::OperatorHandle& op, torch::jit::Stack& stack, std::size_t length);

}  // namespace ullage::runtime
