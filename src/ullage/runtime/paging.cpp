// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/paging.h"

#include "ullage/runtime/ops/op_info.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

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

// A touch maps the pages around it in an aligned range of 64 KiB. A row may begin in one such range and end in the
// next.
constexpr Bytes kAroundAPick = 128_KiB;

// Calls f(tensor) for each tensor among the arguments of `call`.
template <class F>
void each_argument(const OpCall& call, const F& f) {
  for (const c10::IValue& argument : call.arguments) each_tensor(argument, f);
}

// The bytes that a tensor reaches, from the begin of its storage; nothing if it is no plain one.
std::optional<std::pair<Bytes, Bytes>> reach(const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided || tensor.numel() == 0) return std::nullopt;
  const auto first = static_cast<std::size_t>(tensor.storage_offset());
  return std::pair(Bytes{first * tensor.itemsize()},
                   Bytes{at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(), first)});
}

// The most that an op which picks by indices brings into memory of `table`: a row for each index.
Bytes most_picked(const OpCall& call, const at::Tensor& table) {
  std::uint64_t indices = 0;
  each_argument(call, [&](const at::Tensor& tensor) {
    const bool picks = tensor.scalar_type() == c10::kLong || tensor.scalar_type() == c10::kInt;
    if (picks) indices += static_cast<std::uint64_t>(tensor.numel());
  });
  const Bytes row{table.nbytes() / static_cast<std::uint64_t>(std::max<std::int64_t>(table.size(0), 1))};
  return (row + kAroundAPick) * indices;
}

// Narrows `input`, a storage in a mapped file, to what the op reads of it. False: the op reads nothing of it.
bool narrow_to_what_is_read(store::OpInput& input, const OpCall& call) {
  const OpInfo& info = info_of(*call.handle);
  if (info.only_views) return false;
  std::optional<std::pair<Bytes, Bytes>> read;
  each_argument(call, [&](const at::Tensor& tensor) {
    if (bytes_of(*tensor.unsafeGetTensorImpl()) != input.storage) return;
    const auto one = reach(tensor);
    if (!one) return;
    read = read ? std::pair(std::min(read->first, one->first), std::max(read->second, one->second)) : *one;
    if (info.picks && tensor.dim() > 0 && c10::isFloatingType(tensor.scalar_type()))
      input.at_most = most_picked(call, tensor);
  });
  if (!read) return true;
  input.storage = input.storage + read->first;
  input.size = read->second - read->first;
  return true;
}

Inputs inputs_of(const OpCall& call, const store::Pager& pager) {
  Inputs inputs;
  const bool said = says_all_writes(call);
  for (const StorageUse& use : call.inputs) {
    if (use.unread) continue;
    store::OpInput input{use.begin, use.size, use.written, use.sliceable, said && !use.written};
    const bool of_file = !pager.store().owns(use.begin) && pager.holds_file(use.begin);
    if (of_file) input.slice = use.slice;
    if (!of_file || narrow_to_what_is_read(input, call)) inputs.push_back(input);
  }
  return inputs;
}

}  // namespace

bool Paging::fits(const OpCall& call) {
  const Inputs inputs = inputs_of(call, pager_);
  return pager_.fits(std::span(inputs.data(), inputs.size()));
}

// Copies the bytes of a whole copy if there is no room for both storages. The op then uses the one that is written.
void Paging::copy_storage(OpCall& call) {
  const auto from = [&](const StorageUse& use) { return use.begin == call.whole_copy->from; };
  StorageUse* source = std::find_if(call.inputs.begin(), call.inputs.end(), from);
  switch (pager_.copy_storage(call.whole_copy->into, call.whole_copy->from, call.whole_copy->size)) {
    case store::Pager::Copy::NeedsBoth:
      return;
    case store::Pager::Copy::CanDoWithout:
      source->sliceable = true;
      return;
    case store::Pager::Copy::Done:
      call.copied = true;
      source->unread = true;
      return;
  }
}

void Paging::begin(OpCall& call) {
  if (call.whole_copy && !plan_.leads_this_thread()) copy_storage(call);
  const Inputs inputs = inputs_of(call, pager_);
  if (const auto missing = pager_.begin_op(call.signature, std::span(inputs.data(), inputs.size()))) {
    pool_.refuse(*missing, std::string(call.name));
  }
  if (StorageMarks* marks = pool_.marks())
    marks->meet(std::span(call.inputs.data(), call.inputs.size()), info_of(*call.handle).is_collective);
  pool_.update_marks();
}

void Paging::end(OpCall& call, std::span<const c10::IValue> outputs, bool) noexcept {
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
  const bool is_collective = info_of(*call.handle).is_collective;
  if (StorageMarks* marks = pool_.marks()) marks->meet(std::span(uses.data(), uses.size()), is_collective);
  const CardWork::InCollective work(is_collective);
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
