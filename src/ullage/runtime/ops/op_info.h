// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the interceptor wants to know of an operator each time it runs, worked out once: its name, which arguments hold
// tensors and which of them it writes, whether it is made of other ops, how it is cut if it is a list op.

#include "ullage/runtime/ops/list_ops.h"
#include "ullage/runtime/ops/op_call.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::runtime {

struct OpInfo {
  struct TensorArgument {
    std::size_t position = 0;
    bool written = false;
  };

  c10::OperatorHandle handle;
  std::string name;        // "aten::add.Tensor"
  std::uint64_t seed = 0;  // of signatures
  bool composite = false;  // made of other ops, which are seen one by one
  std::size_t arguments = 0;
  std::size_t returns = 0;
  std::vector<TensorArgument> tensors;
  std::optional<ListOp> list_op;
};

// Lives for ever. A few nanoseconds for an op this thread has run before; notices operators that are taken away and
// made anew.
const OpInfo& info_of(const c10::OperatorHandle& op);

// Fills `inputs` and `signature` from the arguments of one call; nothing here is dispatched or materialised.
void gather(const OpInfo& info, std::span<const c10::IValue> arguments, OpCall& call);

// Calls f(tensor) for each tensor that a value holds, in lists and tuples too.
template <class F>
void each_tensor(const c10::IValue& value, const F& f) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) f(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) each_tensor(element, f);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) each_tensor(element, f);
  }
}

// The device whose storages the runtime tells of: the processor, or one card. Said once, before ops are followed.
c10::Device followed_device();
void follow_device(c10::Device device);

// Where its bytes on that device begin; zero where it has none.
Address bytes_of(const c10::TensorImpl& tensor);

// A tensor's storage as the runtime tells it; nothing where it has no bytes there.
std::optional<StorageUse> storage_use(const c10::TensorImpl& tensor);

}  // namespace ullage::runtime
