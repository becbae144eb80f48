// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/floor.h"

#include <algorithm>

namespace ullage::plan {
namespace {

// A name that says where in the model the op is. It is the name of the largest parameter that the op reads, else of the
// largest other storage that it reads.
std::string site(const Step& step, const StepOp& op) {
  const StepStorage* best = nullptr;
  for (const ValueIndex read : op.reads) {
    const StepStorage& storage = step.storages[step.values[read].storage];
    if (storage.name.empty()) continue;
    const auto rank = [](const StepStorage& it) {
      return std::pair(it.category == trace::Category::Parameters, it.bytes);
    };
    if (best == nullptr || rank(storage) > rank(*best)) best = &storage;
  }
  return best == nullptr ? "" : best->name;
}

}  // namespace

std::string described(const Step& step, OpIndex op) {
  if (!step.ops.has(op)) return "";
  const StepOp& it = step.ops[op];
  const std::string where = site(step, it);
  std::string text = it.name;
  if (!where.empty()) text += " " + where;
  return text + " (" + std::string(trace::name(it.phase)) + ")";
}

Floor floor_of(const Problem& problem) {
  std::int64_t most = 0;
  OpIndex at;
  for (const PositionIndex p : problem.positions.ids()) {
    const Problem::Position& position = problem.positions[p];
    // At the end of the step a value that can be moved does not count, because it may be away then.
    const bool end = p.next() == problem.positions.next_id();
    std::int64_t need = position.need;
    for (const MovedIndex v : problem.lists[end ? IdRange<ListIndex>{} : position.reads])
      if (!problem.values[v].pinned) need += problem.values[v].bytes;
    if (need <= most) continue;
    most = need;
    at = problem.tops[p];
  }
  return {.bytes = Bytes{static_cast<std::uint64_t>(most)}, .set_by = described(*problem.step, at)};
}

}  // namespace ullage::plan
