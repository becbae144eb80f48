// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/spans.h"

#include <algorithm>

namespace ullage::plan {
namespace {

Table<StorageIndex, Span> spans_of_storages(const Step& step) {
  const OpIndex beyond = step.ops.next_id().next();
  Table<StorageIndex, Span> spans(step.storages.size(), Span{beyond, beyond});
  for (const StorageIndex s : spans.ids()) {
    if (step.storages[s].from_before) spans[s].from = OpIndex{0};
  }
  for (const GapIndex gap : step.gaps.ids()) {
    for (const GapEvent& event : step.gaps[gap]) {
      Span& span = spans[event.storage];
      (event.born ? span.from : span.until) = op_after(gap);
    }
  }
  for (const OpIndex op : step.ops.ids()) {
    const StepOp& now = step.ops[op];
    for (std::size_t i = now.overwrites; i < now.makes.size(); ++i) {
      spans[step.values[now.makes[i]].storage].from = op.next();
    }
    for (const StorageIndex hidden : now.hides) spans[hidden].from = op.next();
  }
  return spans;
}

}  // namespace

Spans spans_of(const Step& step) {
  Spans spans;
  spans.storages = spans_of_storages(step);
  spans.known.assign(step.storages.size(), false);
  spans.first.resize(step.storages.size());
  spans.last.resize(step.storages.size());
  for (const ValueIndex v : step.values.ids()) {
    const Value& value = step.values[v];
    const StorageIndex s = value.storage;
    Span span = spans.storages[s];
    if (value.maker != kNone) span.from = value.maker.next();
    if (value.overwritten_by != kNone) span.until = std::min(span.until, value.overwritten_by.next());
    spans.values.push_back(span);
    if (!spans.known[s] || span.from < spans.values[spans.first[s]].from) spans.first[s] = v;
    if (!spans.known[s] || span.from >= spans.values[spans.last[s]].from) spans.last[s] = v;
    spans.known[s] = true;
  }
  return spans;
}

}  // namespace ullage::plan
