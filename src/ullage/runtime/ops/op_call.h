// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines one call of a torch op on its way to its kernel. It also defines the interface of listeners, such as the
// pager, the recorder and the follower of a plan. Reads and writes are given by storage, because views share one.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/base/bytes.h"
#include "ullage/store/op_signature.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ullage::runtime {

// A storage with bytes on the followed device, as it was when the interceptor looked at the op. A copy-on-write storage
// is not materialised by looking at it.
struct StorageUse {
  Address begin;         // its data pointer
  Bytes size;            // of the storage, not of the tensor that views it; never zero
  bool written = false;  // the schema says that the op writes it (a few ops write more than they say)
  bool unread = false;   // the kernel will not look at its bytes, so they need not be there
  c10::intrusive_ptr<c10::StorageImpl> storage;  // keeps the storage alive, so that its address is not reused meanwhile
  bool sliceable = false;  // a smaller pool would not hold this together with the others (store::OpInput)
  // Set for the lists of a list op that could run in slices: the most bytes of it that a slice uses (mark_sliceable()).
  std::optional<Bytes> slice = std::nullopt;
};

// Where the two storages of a whole copy begin, and how long each is.
struct WholeCopy {
  Address into, from;
  Bytes size;
};

// Lives from begin() to end(), on the thread that runs the op.
struct OpCall {
  const c10::OperatorHandle* handle = nullptr;
  std::string_view name;  // "aten::add.Tensor"; lives for ever
  store::OpSignature signature;
  c10::SmallVector<StorageUse, 8> inputs;  // storages among the arguments, each once
  std::span<const c10::IValue> arguments;  // valid in begin() and fits() only: the kernel consumes them
  OpCall* outer = nullptr;                 // the intercepted op that this one runs inside; null: there is none
  bool sliced = false;                     // a slice of a list op that did not fit as a whole
  // Set for a copy of one whole storage over another (whole_copy.h). A listener's begin() that has copied the bytes
  // sets `copied`: then the kernel copies nothing.
  std::optional<WholeCopy> whole_copy;
  bool copied = false;
};

class OpListener {
 public:
  virtual ~OpListener() = default;

  // Is there room for the op as a whole? Called before begin(), for list ops (`_foreach_*`, fused optimizers) only. If
  // any listener returns false, the op runs slice by slice; each slice is a call of its own.
  virtual bool fits(const OpCall&) { return true; }

  // Called before the kernel, on its thread. If it throws, the op does not run and the exception reaches the program.
  // Then end() is called for the listeners whose begin() had returned, but not for this one. If ops are seen through
  // RecordFunction only, the exception is swallowed, the op runs, and fits() is never called.
  virtual void begin(OpCall& call) = 0;

  // Called after the kernel, in the reverse order of begin(). If the kernel threw, `returned` is false and `outputs` is
  // empty.
  virtual void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept = 0;
};

}  // namespace ullage::runtime
