// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/half_ops.h"

#include "ullage/runtime/ops/op_info.h"

#include <ATen/core/Tensor.h>

namespace ullage::runtime {
namespace {

// A view's schema says that its result is an argument's storage, and that it does not write it.
bool is_view(const OpCall& call) {
  const auto& returns = call.handle->schema().returns();
  if (returns.empty()) return false;
  const c10::AliasInfo* alias = returns.front().alias_info();
  return alias != nullptr && !alias->isWrite();
}

bool casts(const OpCall& call) { return call.name == "aten::_to_copy" || call.name == "aten::copy_"; }

}  // namespace

void HalfOps::begin(OpCall& call) {
  bool half = false;
  for (const c10::IValue& argument : call.arguments) {
    each_tensor(argument, [&](const at::Tensor& tensor) { half |= tensor.scalar_type() == at::kBFloat16; });
  }
  if (half && !casts(call) && !is_view(call)) count_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ullage::runtime
