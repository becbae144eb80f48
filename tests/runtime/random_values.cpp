// SPDX-License-Identifier: Apache-2.0
#include "random_values.h"

#include <ATen/ops/mean.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace random_program {

Value Values::any(Kind kind) {
  const auto of_kind = [&](const Value& value) { return value.kind == kind; };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(values_, of_kind));
  if (count == 0) throw std::logic_error("no value of a kind is left");
  std::uint64_t left = below(count);
  for (const Value& value : values_) {
    if (of_kind(value) && left-- == 0) return value;
  }
  throw std::logic_error("not reached");
}

Value* Values::writable() {
  std::vector<Value*> free;
  for (Value& value : values_) {
    if (!value.block->fixed) free.push_back(&value);
  }
  return free.empty() ? nullptr : free[below(free.size())];
}

void Values::put(Value value) {
  const auto of_kind = [&](const Value& one) { return one.kind == value.kind; };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(values_, of_kind));
  if (count < most_) {
    values_.push_back(std::move(value));
    return;
  }
  std::uint64_t left = below(count);
  for (Value& old : values_) {
    if (!of_kind(old) || left-- > 0) continue;
    if (old.tensor.requires_grad() && chance(70)) means_.push_back(old.tensor.mean());
    old = std::move(value);
    return;
  }
}

void Values::fix_views() {
  for (const Value& value : values_) {
    const bool viewed = value.tensor.is_view() || value.block.use_count() > 1;
    value.block->fixed |= viewed;
  }
}

}  // namespace random_program
