// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of one op as the recorder writes them down: each with its storage, its sizes, and whether it is a leaf
// that requires grad. Gathered without a lock; the storages are looked up later, under the recorder's.

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
    bool leaf = false;                   // that requires grad
    std::uint32_t first = 0, count = 0;  // of its sizes
  };
  struct Leaf {
    Address at;
    Address gradient;  // of its .grad; zero: it has none, or none that can be looked at now
  };

  // What an op receives. Gradients are looked at outside backward and without grad mode only: there an optimizer reads
  // them too.
  OpUses(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments);
  // What it returned.
  explicit OpUses(std::span<const c10::IValue> outputs);
  // What is left of it where its arguments are gone: no sizes.
  explicit OpUses(std::span<const StorageUse> inputs);

  std::span<const One> all() const { return {all_.data(), all_.size()}; }
  std::span<const Leaf> leaves() const { return {leaves_.data(), leaves_.size()}; }

  // Those of storages for which id_of(Address) is not null, as the log takes them; good until the next call.
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
