// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_steps.h"

#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/take/step_finder.h"

#include <algorithm>
#include <functional>
#include <string>

namespace ullage::trace {
namespace {

void tell(StepFinder& finder, const TakeIndex& index, const Levels& level, OpId op) {
  const OpDetail& one = index.detail(op);
  const std::uint64_t before =
      one.begin.value == 0 ? index.take.trace.live_before.count : level.live[one.begin.value - 1].count;
  const std::uint64_t token = std::hash<std::string>{}(index.take.trace.ops[op.value].name);
  bool updates = false;
  for (const TensorUse& use : one.uses) {
    const bool writes = use.how == TensorUse::How::Written && index.leaf[use.storage.value] && !one.backward;
    if (!writes) continue;
    if (updates) {
      finder.also_writes(use.storage);
    } else {
      finder.op(token, StepFinder::Kind::Update, before, use.storage);
    }
    updates = true;
  }
  if (!updates) finder.op(token, one.backward ? StepFinder::Kind::Backward : StepFinder::Kind::Other, before);
  for (const TensorUse& use : one.uses) {
    if (!index.leaf[use.storage.value] || use.how == TensorUse::How::Output) continue;
    finder.parameter_used(use.storage, one.grad_mode && !one.backward);
  }
}

std::vector<EventId> found_ends(const TakeIndex& index) {
  const Levels level = levels(index.take.trace);
  StepFinder finder(UINT64_MAX);
  if (index.take.trace.live_before > Bytes{}) finder.began_in_midst();
  for (std::size_t i = 0; i < index.take.details.size(); ++i) tell(finder, index, level, OpId{i});
  if (index.take.end != Take::End::OutOfMemory) finder.ended();
  std::vector<EventId> ends;
  EventId end{};
  std::size_t op = 0;
  for (const std::uint64_t border : finder.borders()) {
    for (; op < border; ++op) {
      const EventId after{std::min(index.take.details[op].end.value + 1, index.take.trace.end().value)};
      end = std::max(end, after);
    }
    if (border > 0) ends.push_back(end);
  }
  return ends;
}

std::vector<EventId> told_ends(const Take& take) {
  std::vector<EventId> ends;
  for (const ReportedBorder& one : take.borders) {
    if (one.what == ReportedBorder::What::StepEnd) ends.push_back(one.at);
  }
  return ends;
}

}  // namespace

Steps take_steps(const TakeIndex& index) {
  const EventId end = index.take.trace.end();
  std::vector<EventId> ends = told_ends(index.take);
  if (ends.empty()) ends = found_ends(index);
  Steps steps;
  if (ends.empty() || end == EventId{}) return steps;
  steps.from = Steps::From::Recorded;
  steps.begins.push_back(EventId{});
  for (const EventId one : ends) {
    if (one > steps.begins.back() && one < end) steps.begins.push_back(one);
  }
  steps.last_is_whole = ends.back() >= end;
  return steps;
}

}  // namespace ullage::trace
