// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/list_ops.h"

#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/op_info.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace ullage::runtime {
namespace {

// List ops besides `_foreach_*`. The forms that are not in place are missing, because they copy every list and call
// these.
constexpr std::array<std::string_view, 5> kFused = {
    "aten::_fused_adam_",
    "aten::_fused_adamw_",
    "aten::_fused_sgd_",
    "aten::_fused_adagrad_",
    "aten::_amp_foreach_non_finite_check_and_unscale_",
};

bool is_list_op(std::string_view name) {
  if (name.starts_with("aten::_foreach_")) return true;
  for (const std::string_view fused : kFused)
    if (name == fused) return true;
  return false;
}

// Is it a list with one value per tensor, of tensors or numbers? (A list of int holds sizes or dimensions for all.)
bool is_per_tensor(const c10::Type& type) {
  if (type.kind() != c10::TypeKind::ListType) return false;
  const c10::TypeKind element = type.expectRef<c10::ListType>().getElementType()->kind();
  return element == c10::TypeKind::TensorType || element == c10::TypeKind::NumberType ||
         element == c10::TypeKind::FloatType;
}

bool is_list_of_tensors(const c10::Type& type) {
  return type.kind() == c10::TypeKind::ListType &&
         type.expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::TensorType;
}

const c10::IValue* arguments_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  return stack.data() + (stack.size() - op.schema().arguments().size());
}

c10::IValue cut_list(const c10::IValue& whole, std::size_t from, std::size_t to) {
  const c10::List<c10::IValue> list = whole.toList();
  c10::List<c10::IValue> part(list.elementType());
  part.reserve(to - from);
  for (std::size_t i = from; i < to; ++i) part.push_back(list.get(i));
  return part;
}

torch::jit::Stack cut(const ListOp& list_op, const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                      std::size_t from, std::size_t to) {
  const c10::IValue* arguments = arguments_of(op, stack);
  torch::jit::Stack part(arguments, arguments + op.schema().arguments().size());
  for (const std::size_t at : list_op.lists)
    if (!part[at].toListRef().empty()) part[at] = cut_list(part[at], from, to);
  if (list_op.scalars) {
    const UnseenOps ours;
    c10::IValue& scalars = part[*list_op.scalars];
    scalars = scalars.toTensor().narrow(0, static_cast<std::int64_t>(from), static_cast<std::int64_t>(to - from));
  }
  return part;
}

}  // namespace

std::optional<ListOp> ListOp::of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  if (!is_list_op(schema.name())) return std::nullopt;
  ListOp list_op;
  bool has_tensors = false;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (is_per_tensor(*argument.real_type())) {
      list_op.lists.push_back(i);
      has_tensors |= is_list_of_tensors(*argument.real_type());
    } else if (argument.name() == "scalars" && argument.real_type()->kind() == c10::TypeKind::TensorType) {
      list_op.scalars = i;
    }
  }
  const auto& returns = schema.returns();
  list_op.returns_list = returns.size() == 1 && is_list_of_tensors(*returns[0].real_type());
  // An op that returns anything else (one tensor for all, several lists) is not cut.
  if (!has_tensors || (!returns.empty() && !list_op.returns_list)) return std::nullopt;
  return list_op;
}

std::size_t list_length(const ListOp& list_op, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const c10::IValue* arguments = arguments_of(op, stack);
  std::size_t length = 0;
  for (const std::size_t at : list_op.lists) {
    const std::size_t here = arguments[at].toListRef().size();
    if (here == 0) continue;
    if (length != 0 && here != length) return 0;
    length = here;
  }
  if (list_op.scalars) {
    const at::Tensor& scalars = arguments[*list_op.scalars].toTensor();
    if (scalars.dim() != 1 || scalars.size(0) != static_cast<std::int64_t>(length)) return 0;
  }
  return length;
}

namespace {

// What one element of the lists uses of a storage.
struct ElementUse {
  Bytes storage;  // its size
  Bytes tensors;  // from the first to the last byte of each tensor
};
using ElementUses = std::map<Address, ElementUse>;

ElementUses uses_of_element(const ListOp& list_op, const OpCall& call, std::size_t element) {
  ElementUses uses;
  for (const std::size_t at : list_op.lists) {
    const auto& list = call.arguments[at].toListRef();
    if (list.empty() || !list[element].isTensor() || !list[element].toTensor().defined()) continue;
    const at::Tensor& tensor = list[element].toTensor();
    const std::optional<StorageUse> use = storage_use(*tensor.unsafeGetTensorImpl());
    if (!use) continue;
    ElementUse& here = uses[use->begin];
    here.storage = use->size;
    here.tensors += Bytes{at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize())};
  }
  return uses;
}

// An element with the most bytes in sight of what `of` measures.
class Largest {
 public:
  explicit Largest(Bytes ElementUse::*of) : of_(of) {}
  void meet(const ElementUses& element) {
    Bytes sum;
    for (const auto& [begin, use] : element) sum += use.*of_;
    if (sum <= most_) return;
    most_ = sum;
    element_ = element;
  }
  bool uses(Address storage) const { return element_.contains(storage); }

 private:
  Bytes ElementUse::*of_;
  Bytes most_;
  ElementUses element_;
};

}  // namespace

// A storage of the pool is needed whole, and one in a mapped file only as far as the tensors reach. It is not known
// here which is which, so the largest element by either measure counts. They differ only if a tensor is a part of a
// storage.
void mark_sliceable(const ListOp& list_op, OpCall& call, std::size_t length) {
  std::map<Address, Bytes> listed;  // the most that one element's tensors reach
  Largest by_storages(&ElementUse::storage), by_tensors(&ElementUse::tensors);
  for (std::size_t i = 0; i < length; ++i) {
    const ElementUses uses = uses_of_element(list_op, call, i);
    for (const auto& [begin, use] : uses) listed[begin] = std::max(listed[begin], use.tensors);
    by_storages.meet(uses);
    by_tensors.meet(uses);
  }
  for (StorageUse& use : call.inputs) {
    const auto found = listed.find(use.begin);
    if (found == listed.end()) continue;
    use.sliceable = !by_storages.uses(use.begin) && !by_tensors.uses(use.begin);
    use.slice = use.sliceable ? Bytes{} : found->second;
  }
}

void run_in_halves(const ListOp& list_op, const c10::OperatorHandle& op, torch::jit::Stack& stack, std::size_t length) {
  c10::List<at::Tensor> joined;
  joined.reserve(length);
  const std::size_t middle = length / 2;
  for (const auto& [from, to] : {std::pair{std::size_t{0}, middle}, std::pair{middle, length}}) {
    torch::jit::Stack part = cut(list_op, op, stack, from, to);
    op.callBoxed(part);
    if (list_op.returns_list) joined.append(part.back().toTensorList());
  }
  torch::jit::drop(stack, op.schema().arguments().size());
  if (list_op.returns_list) stack.emplace_back(std::move(joined));
}

}  // namespace ullage::runtime
