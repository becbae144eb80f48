// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts ops over lists of tensors (`_foreach_*`, fused optimizers) into smaller ones. Then only one slice must be in
// memory at once, and not, for example, every parameter with both its moments. Only ops that compute each element
// of the lists on its own are cut, so the result is the same bit by bit.

#include "ullage/runtime/ops/op_call.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace ullage::runtime {

// How an op is cut; made once per operator from its schema.
struct ListOp {
  std::vector<std::size_t> lists;      // positions of arguments that have one value per tensor, or are empty
  std::optional<std::size_t> scalars;  // position of a 1-D tensor with one number per tensor
  bool returns_list = false;           // false: it returns nothing

  // Returns nothing for an op that is not a list op, or whose elements depend on one another.
  static std::optional<ListOp> of(const c10::OperatorHandle& op);
};

// Length of the lists in the call whose arguments are the last on the stack. Zero or one: it cannot be cut. Also zero
// if the lists differ in length: the op itself then reports the error.
std::size_t list_length(const ListOp& list_op, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// For a list op that runs as a whole although it could be cut. Sets `sliceable` for the inputs from its lists that the
// largest slice of one element would not use. Sets `slice` for all inputs from its lists: what one element uses of the
// storage at most, or zero if the largest slice does not use it. `length`: of the lists, from list_length(). Call it
// before the kernel runs.
void mark_sliceable(const ListOp& list_op, OpCall& call, std::size_t length);

// Runs both halves through the dispatcher, so that the interceptor sees each half, and cuts it again if it does not
// fit. Replaces the arguments on the stack by the outputs. If it throws, the slices before have taken effect.
void run_in_halves(const ListOp& list_op, const c10::OperatorHandle& op, torch::jit::Stack& stack, std::size_t length);

}  // namespace ullage::runtime
