// SPDX-License-Identifier: Apache-2.0
#pragma once

// One op of torch on its way to its kernel, and who may listen: the pager, the recorder, who carries a
// plan out. What an op reads and writes is told by storage, since views share one.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace ullage::runtime {

// A storage with bytes on the followed device, as it was when it was looked at. Nothing is materialised (copy-on-write)
// for that.
struct StorageUse {
  Address begin;         // its data pointer
  Bytes size;            // of the storage, not of the tensor that views it; never zero
  bool written = false;  // the schema says that the op writes it (a few ops write more than they say)
  bool unread = false;   // a plan says that the op does not look at it: it need not be there
  c10::intrusive_ptr<c10::StorageImpl> storage;  // held, so that neither it nor its address is handed on meanwhile
};

// Lives on the stack of the thread that runs the op, from begin() to end().
struct OpCall {
  const c10::OperatorHandle* handle = nullptr;
  std::string_view name;                   // "aten::add.Tensor"; lives for ever
  std::uint64_t signature = 0;             // equal for the same op on tensors of equal types and sizes
  c10::SmallVector<StorageUse, 8> inputs;  // storages among the arguments, each once
  std::span<const c10::IValue> arguments;  // in begin() and fits() only: the kernel consumes them
  OpCall* outer = nullptr;                 // the op that this one runs inside of, where both are seen; else null
  bool sliced = false;                     // a slice of a list op that did not fit as a whole
};

class OpListener {
 public:
  virtual ~OpListener() = default;

  // Asked of list ops (`_foreach_*`, fused optimizers) only, before begin(): could all inputs be resident at once?
  // After a false from any listener the op runs slice by slice, each slice a call of its own.
  virtual bool fits(const OpCall&) { return true; }

  // Before the kernel, on its thread. May throw: then the op does not run, the exception reaches the program, and end()
  // is called for the listeners whose begin() had returned, but not for this one.
  virtual void begin(OpCall& call) = 0;

  // After the kernel, also when it threw: then `returned` is false and `outputs` empty. Reverse order of begin().
  virtual void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept = 0;
};

}  // namespace ullage::runtime
