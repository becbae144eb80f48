// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between which ops of a step its storages and values exist in plain execution, that is, without a plan. For the lower
// bound (bound.cpp).

#include "ullage/plan/model/step.h"

namespace ullage::plan {

// Half-open: exists when op `from` begins, and no more when op `until` begins. So the span of what op k makes begins
// with op k + 1.
struct Span {
  OpIndex from;
  OpIndex until;
  bool holds(OpIndex op) const { return from <= op && op < until; }
};

struct Spans {
  // `from` is 0 if it exists when the step begins; `until` is ops.size() + 1 if it outlives the step.
  Table<StorageIndex, Span> storages;
  // While the value is the newest of its storage. If op k overwrites it, the span ends with k: `until` is k + 1.
  Table<ValueIndex, Span> values;
  Table<StorageIndex, bool> known;              // the step lists a value of it
  Table<StorageIndex, ValueIndex> first, last;  // of its values, if known
};
Spans spans_of(const Step& step);

}  // namespace ullage::plan
