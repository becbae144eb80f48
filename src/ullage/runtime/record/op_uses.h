// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gathers the tensors of one op for the recorder: each with its storage, its sizes, and whether it is a leaf that
// requires grad. No lock is held for that; the storages are looked up later, under the recorder's lock.

#include "ullage/runtime/ops/op_call.h"

#include "ullage/trace/file/event_log.h"

#include <c10/core/TensorImpl.h>

#include <span>

namespace ullage::runtime {

class OpUses final {
 public:
  struct One {
    Address at;  // of the storage; never zero
    trace::TensorUse::How how = trace::TensorUse::How::Read;
    std::uint8_t dtype = 0;
    bool leaf = false;                   // a leaf that requires grad
    std::uint32_t first = 0, count = 0;  // of its sizes in sizes_
  };
  struct Leaf {
    Address at;
    Address gradient;  // of its .grad; zero: it has none, or reading it now is unsafe
  };

  // The tensors that an op receives. Reads the .grad of leaves only outside backward and without grad mode.
  OpUses(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments);
  // The tensors that it returned.
  explicit OpUses(std::span<const c10::IValue> outputs);
  // For an op whose arguments are gone: its storages only, without sizes, types and leaves.
  explicit OpUses(std::span<const StorageUse> inputs);

  std::span<const One> all() const { return {all_.data(), all_.size()}; }
  std::span<const Leaf> leaves() const { return {leaves_.data(), leaves_.size()}; }

  // The uses whose storage is known (id_of(Address) is not null), in the log's form. Valid until the next call.
  template <class IdOf>
  std::span<const trace::UseView> known(const IdOf& id_of) {
    views_.clear();
    for (const One& use : all_) {
      if (const auto* held = id_of(use.at))
        views_.push_back({held->id, use.how, use.dtype, std::span(sizes_.data() + use.first, use.count)});
    }
    return {views_.data(), views_.size()};
  }

 private:
  void add(const c10::TensorImpl& tensor, trace::TensorUse::How how);
  void add_leaf(const c10::TensorImpl& tensor);

  c10::SmallVector<One, 8> all_;
  c10::SmallVector<Leaf, 4> leaves_;
  c10::SmallVector<std::int64_t, 32> sizes_;
  c10::SmallVector<trace::UseView, 8> views_;
};

}  // namespace ullage::runtime
