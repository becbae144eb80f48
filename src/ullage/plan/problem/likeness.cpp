// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/likeness.h"

#include <functional>
#include <map>
#include <string>

namespace ullage::plan {
namespace {

// How many makers back two values are compared. Three tell a block's first norm from its second.
constexpr int kDepth = 3;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15ull)) * 0xbf58476d1ce4e5b9ull;
}

// Hashes how a value was made. It uses names, not bytes, because layers of one kind differ in size. std::hash suffices,
// because it is the same in every run of one build.
std::uint64_t origin(const Step& step, ValueIndex value, int depth) {
  const OpIndex maker = step.values[value].maker;
  if (maker == kNone) return step.storages[step.values[value].storage].from_before ? 1 : 2;
  const StepOp& op = step.ops[maker];
  std::uint64_t hash = std::hash<std::string>()(op.name);
  for (std::size_t i = 0; i < op.makes.size(); ++i)
    if (op.makes[i] == value) hash = mixed(hash, i);
  if (depth == 0) return hash;
  // Follows only the first read, so that lists of any length compare equal.
  if (!op.reads.empty()) hash = mixed(hash, origin(step, op.reads[0], depth - 1));
  return hash;
}

}  // namespace

Likeness likeness_of(const Problem& problem) {
  const Step& step = *problem.step;
  Likeness likeness;
  std::map<std::uint64_t, KindIndex> number;
  for (const SlotIndex i : problem.slots.ids()) {
    const Problem::Slot& slot = problem.slots[i];
    const StepOp& op = step.ops[problem.positions[slot.position].op];
    std::uint64_t hash = origin(step, problem.values[slot.value].value, kDepth);
    hash = mixed(mixed(hash, std::hash<std::string>()(op.name)), static_cast<std::uint64_t>(op.phase));
    hash = mixed(hash, (slot.last ? 4u : 0u) + (slot.drop ? 2u : 0u) + (slot.spill ? 1u : 0u));
    const auto known = number.emplace(hash, likeness.slots.next_id());
    if (known.second) likeness.slots.push_back({});
    likeness.kind.push_back(known.first->second);
    likeness.slots[known.first->second].push_back(i);
  }
  return likeness;
}

}  // namespace ullage::plan
