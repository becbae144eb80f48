// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/paging.h"

#include "ullage/runtime/ops/op_info.h"

#include <c10/util/SmallVector.h>

#include <optional>

namespace ullage::runtime {
namespace {

using Inputs = c10::SmallVector<store::OpInput, 8>;

// Is the call, or one that it runs inside, that of an op whose schema marks all that it writes?
bool says_all_writes(const OpCall& call) {
  for (const OpCall* one = &call; one != nullptr; one = one->outer) {
    if (info_of(*one->handle).says_all_writes) return true;
  }
  return false;
}

Inputs inputs_of(const OpCall& call) {
  Inputs inputs;
  const bool said = says_all_writes(call);
  for (const StorageUse& use : call.inputs) {
    if (!use.unread) inputs.push_back({use.begin, use.size, use.written, use.sliceable, said && !use.written});
  }
  return inputs;
}

}  // namespace

bool Paging::fits(const OpCall& call) {
  const Inputs inputs = inputs_of(call);
  return pager_.fits(std::span(inputs.data(), inputs.size()));
}

void Paging::begin(OpCall& call) {
  const Inputs inputs = inputs_of(call);
  if (const auto missing = pager_.begin_op(call.signature, std::span(inputs.data(), inputs.size()))) {
    pool_.refuse(*missing, std::string(call.name));
  }
  if (StorageMarks* marks = pool_.marks()) marks->meet(std::span(call.inputs.data(), call.inputs.size()));
  pool_.update_marks();
}

void Paging::end(OpCall&, std::span<const c10::IValue> outputs, bool) noexcept {
  if (work_ == nullptr) return pager_.end_op();
  work_->op_ended();
  c10::SmallVector<StorageUse, 4> uses;
  c10::SmallVector<Address, 4> made;
  for (const c10::IValue& output : outputs) {
    each_tensor(output, [&](const at::Tensor& tensor) {
      const std::optional<StorageUse> use = storage_use(*tensor.unsafeGetTensorImpl());
      if (!use) return;
      uses.push_back(*use);
      made.push_back(use->begin);
    });
  }
  if (StorageMarks* marks = pool_.marks()) marks->meet(std::span(uses.data(), uses.size()));
  pager_.end_op(/*remember=*/true, std::span(made.data(), made.size()));
}

void Paging::saved(const StorageUse& use, SavedKind) { pager_.saved(use.begin); }

void Paging::unpacking(const StorageUse& use) {
  if (plan_.leads_this_thread()) return;  // the storage comes back before the op that reads it
  if (const auto missing = pager_.bring_back(use.begin)) pool_.refuse(*missing, "backward");
  pool_.update_marks();
}

void Paging::released(Address begin) noexcept { pager_.released(begin); }

}  // namespace ullage::runtime
