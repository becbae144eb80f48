// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/spans.h"

#include <algorithm>

namespace ullage::plan {
namespace {

std::vector<Span> spans_of_storages(const Step& step) {
  const std::size_t beyond = step.ops.size() + 1;
  std::vector<Span> spans(step.storages.size(), Span{beyond, beyond});
  for (std::size_t s = 0; s < spans.size(); ++s) {
    if (step.storages[s].from_before) spans[s].from = 0;
  }
  for (std::size_t gap = 0; gap < step.gaps.size(); ++gap) {
    for (const GapEvent& event : step.gaps[gap]) {
      Span& span = spans[event.storage.value];
      (event.born ? span.from : span.until) = gap;
    }
  }
  for (std::size_t op = 0; op < step.ops.size(); ++op) {
    const StepOp& now = step.ops[op];
    for (std::size_t i = now.overwrites; i < now.makes.size(); ++i) {
      spans[step.values[now.makes[i].value].storage.value].from = op + 1;
    }
    for (const StorageIndex hidden : now.hides) spans[hidden.value].from = op + 1;
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
  for (std::size_t v = 0; v < step.values.size(); ++v) {
    const Value& value = step.values[v];
    const std::size_t s = value.storage.value;
    Span span = spans.storages[s];
    if (value.maker != kNone) span.from = value.maker.value + 1;
    if (value.overwritten_by != kNone) span.until = std::min<std::size_t>(span.until, value.overwritten_by.value + 1);
    spans.values.push_back(span);
    if (!spans.known[s] || span.from < spans.values[spans.first[s].value].from) spans.first[s] = {v};
    if (!spans.known[s] || span.from >= spans.values[spans.last[s].value].from) spans.last[s] = {v};
    spans.known[s] = true;
  }
  return spans;
}

}  // namespace ullage::plan
