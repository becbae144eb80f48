// SPDX-License-Identifier: Apache-2.0
#pragma once

// From which op of a step to which one its storages and values are there in plain execution.

#include "ullage/plan/model/step.h"

namespace ullage::plan {

// Of ops, half open: there when op `from` begins, gone when op `until` begins. Steps have fewer than 2^31 ops.
struct Span {
  OpIndex from;
  OpIndex until;
  bool holds(OpIndex op) const { return from <= op && op < until; }
};

struct Spans {
  // `until` is ops.size() + 1 where it stays beyond the step; `from` is 0 where it is there when the step begins.
  Table<StorageIndex, Span> storages;
  // While it is the newest of its storage. The op that overwrites it still finds it.
  Table<ValueIndex, Span> values;
  Table<StorageIndex, bool> known;              // some value lives in it
  Table<StorageIndex, ValueIndex> first, last;  // where known: of its values
};
Spans spans_of(const Step& step);

}  // namespace ullage::plan
