// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out once, for each operator, the facts that the interceptor needs at every call. These are its name, the
// arguments that hold tensors, those that it writes, and whether other ops compute it. For a list op it also says how
// to cut the list.

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
  std::string name;              // "aten::add.Tensor"
  std::uint64_t seed = 0;        // where OpCall::signature begins
  bool says_all_writes = false;  // its schema marks all arguments that it writes (plan::writes_what_it_says())
  bool composite = false;        // made of other ops, which are intercepted one by one
  bool only_views = false;       // returns views of its arguments and touches no bytes (aten::t)
  bool copies = false;           // aten::copy_
  bool is_collective = false;    // of torch.distributed: gives its work to streams that nobody names (c10d::allreduce_)
  bool picks = false;            // reads only those parts of its first tensor that indices name (aten::embedding)
  std::size_t arguments = 0;
  std::size_t returns = 0;
  std::vector<TensorArgument> tensors;
  std::optional<ListOp> list_op;
};

// Returns an operator's info, which lives for ever. Takes a few nanoseconds for an op that this thread has run before.
// Stays right when an operator is deregistered and registered again.
const OpInfo& info_of(const c10::OperatorHandle& op);

// Fills `inputs` and `signature` of `call` from its arguments. Dispatches and materialises nothing.
void gather(const OpInfo& info, std::span<const c10::IValue> arguments, OpCall& call);

// Calls f(tensor) for each defined tensor that a value holds, in lists and tuples too.
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

// The device whose storages the runtime follows: the CPU, or one card. Set once, before ops are followed. Storages are
// compared by device type only, so those of other cards are looked at as well.
c10::Device followed_device();
void follow_device(c10::Device device);

// Where a tensor's storage begins; zero if it has no bytes on the followed device.
Address bytes_of(const c10::TensorImpl& tensor);

// A tensor's storage; nothing if it has no bytes on the followed device.
std::optional<StorageUse> storage_use(const c10::TensorImpl& tensor);

}  // namespace ullage::runtime
