// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/floor.h"

#include <algorithm>

namespace ullage::plan {
namespace {

// The named thing among what an op reads that tells most of where it stands: a parameter, else the largest other.
std::string site(const Step& step, const StepOp& op) {
  const StepStorage* best = nullptr;
  for (const ValueIndex read : op.reads) {
    const StepStorage& storage = step.storages[step.values[read.value].storage.value];
    if (storage.name.empty()) continue;
    const auto rank = [](const StepStorage& it) {
      return std::pair(it.category == trace::Category::Parameters, it.bytes);
    };
    if (best == nullptr || rank(storage) > rank(*best)) best = &storage;
  }
  return best == nullptr ? "" : best->name;
}

}  // namespace

std::string described(const Step& step, std::size_t op) {
  if (op >= step.ops.size()) return "";
  const StepOp& it = step.ops[op];
  const std::string where = site(step, it);
  std::string text = it.name;
  if (!where.empty()) text += " " + where;
  return text + " (" + std::string(trace::name(it.phase)) + ")";
}

Floor floor_of(const Problem& problem) {
  std::int64_t most = 0;
  std::size_t at = 0;
  for (const Problem::Position& position : problem.positions) {
    // What may be away when the step ends is not counted there.
    const bool end = &position == &problem.positions.back();
    std::int64_t need = position.need;
    for (std::int32_t i = position.reads.begin; !end && i < position.reads.end; ++i) {
      const Problem::Moved& value =
          problem.values[static_cast<std::size_t>(problem.lists[static_cast<std::size_t>(i)])];
      if (!value.pinned) need += value.bytes;
    }
    if (need <= most) continue;
    most = need;
    at = static_cast<std::size_t>(position.top);
  }
  return {.bytes = Bytes{static_cast<std::uint64_t>(most)}, .set_by = described(*problem.step, at)};
}

}  // namespace ullage::plan
