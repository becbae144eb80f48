// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/search.h"

#include <algorithm>

namespace ullage::plan {
namespace {

constexpr std::size_t kLookedAt = 24;  // slots that are tried at a time

struct Candidate {
  SlotIndex slot{};
  double ratio = 0;  // seconds per byte: a guess at first, raised if a try costs more
};

double guess(const Problem& problem, SlotIndex slot) {
  const Problem::Slot& it = problem.slots[slot];
  const Problem::Moved& value = problem.values[it.value];
  double least = problem.write_seconds + problem.read_seconds;
  const auto bytes = static_cast<double>(std::max<std::int64_t>(1, value.bytes));
  if (!it.spill || it.drop)
    for (const RecipeIndex way : {value.recompute, value.batch_norm})
      if (way != kNone) {
        const double ratio = problem.recipes[way].seconds / bytes;
        least =
            it.spill ? std::min(least, ratio) : (way == value.batch_norm || value.batch_norm == kNone ? ratio : least);
      }
  return least;
}

enum class Way { Drop, DropAndHold, Spill };

// Applies `way` to `choice`. Returns false if it is not allowed here, or if DropAndHold would hold nothing, which is
// the same as Drop.
bool take(const Problem& problem, const Problem::Slot& slot, Way way, After& after, Choice& choice) {
  if (way == Way::Spill ? !slot.spill : !slot.drop) return false;
  after = way == Way::Spill ? After::Spill : After::Drop;
  if (way != Way::DropAndHold) return true;
  std::vector<SlotIndex> held;
  sources(problem, choice, slot.value, held);
  for (const SlotIndex it : held) choice.after[it] = After::Keep;
  return !held.empty();
}

}  // namespace

std::vector<Found> greedy(const Problem& problem, Timeline& timeline, const Choice& start, std::int64_t target,
                          const SearchEnd& end) {
  std::vector<Found> curve;
  Choice choice = start;
  Outcome now = timeline.run(choice, target);
  curve.push_back({choice, now});
  std::vector<Candidate> todo;
  for (const SlotIndex i : problem.slots.ids())
    if (!problem.slots[i].last && choice.after[i] == After::Keep) todo.push_back({i, guess(problem, i)});
  while (now.peak > target && !todo.empty()) {
    const std::size_t most = std::min(kLookedAt, todo.size());
    std::partial_sort(todo.begin(), todo.begin() + static_cast<std::ptrdiff_t>(most), todo.end(),
                      [](const Candidate& a, const Candidate& b) {
                        return a.ratio < b.ratio || (a.ratio == b.ratio && a.slot < b.slot);
                      });
    double best = 1e300;
    std::size_t best_at = most;
    Choice best_choice;
    Outcome best_outcome;
    for (std::size_t i = 0; i < most; ++i) {
      if (end.is_here()) return curve;
      const Problem::Slot& slot = problem.slots[todo[i].slot];
      double least = 1e300;
      for (const Way way : {Way::Drop, Way::DropAndHold, Way::Spill}) {
        Choice tried = choice;
        if (!take(problem, slot, way, tried.after[todo[i].slot], tried)) continue;
        const Outcome outcome = timeline.run(tried, target);
        if (!outcome.possible) continue;
        const double gain = now.over - outcome.over + static_cast<double>(now.peak - outcome.peak);
        const double cost = outcome.seconds - now.seconds + 1e-9;
        const double ratio = gain > 0 ? cost / gain : 1e100;
        least = std::min(least, cost / static_cast<double>(problem.values[slot.value].bytes + 1));
        if (ratio < best) best = ratio, best_at = i, best_choice = std::move(tried), best_outcome = outcome;
      }
      todo[i].ratio = std::max(todo[i].ratio, least);
    }
    if (best_at == most || best >= 1e100) {
      todo.erase(todo.begin(), todo.begin() + static_cast<std::ptrdiff_t>(most));
      continue;
    }
    choice = std::move(best_choice);
    todo.erase(todo.begin() + static_cast<std::ptrdiff_t>(best_at));
    now = best_outcome;
    curve.push_back({choice, now});
  }
  return curve;
}

std::vector<Found> simple_choices(const Problem& problem, Timeline& timeline, std::int64_t target) {
  constexpr std::size_t kSteps = 40;
  std::vector<Candidate> all;
  for (const SlotIndex i : problem.slots.ids())
    if (!problem.slots[i].last && problem.slots[i].drop) all.push_back({i, guess(problem, i)});
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.ratio < b.ratio || (a.ratio == b.ratio && a.slot < b.slot);
  });
  std::vector<Found> found;
  for (std::size_t step = 0; step <= kSteps; ++step) {
    Choice choice = plain_choice(problem);
    const std::size_t most = all.size() * step / kSteps;
    for (std::size_t i = 0; i < most; ++i) choice.after[all[i].slot] = After::Drop;
    found.push_back({choice, timeline.run(choice, target)});
    std::vector<SlotIndex> held;
    for (std::size_t i = 0; i < most; ++i) sources(problem, choice, problem.slots[all[i].slot].value, held);
    if (held.empty()) continue;
    for (const SlotIndex slot : held) choice.after[slot] = After::Keep;
    found.push_back({choice, timeline.run(choice, target)});
  }
  std::erase_if(found, [](const Found& it) { return !it.outcome.possible; });
  return found;
}

}  // namespace ullage::plan
