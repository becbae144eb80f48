// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/moves.h"
#include "ullage/plan/search/search.h"

#include <algorithm>
#include <cmath>

namespace ullage::plan {

double energy(const Problem& problem, const Outcome& outcome, std::int64_t budget) {
  if (!outcome.possible) return 1e9;
  const double cost = outcome.seconds / std::max(1e-9, problem.step->in_ops.count);
  if (outcome.peak <= budget) return cost;
  const auto bytes = static_cast<double>(std::max<std::int64_t>(1, budget));
  const double over = 3 * static_cast<double>(outcome.peak - budget) / bytes +
                      2 * outcome.over / bytes / static_cast<double>(problem.positions.size());
  return cost + 0.002 + over * problem.dearest;
}

Annealed anneal(const Problem& problem, Timeline& timeline, const Found& start, const Annealing& how) {
  Moves moves(problem, how.seed, how.copies);
  Choice choice = start.choice;
  Outcome now = timeline.run(choice, how.budget);
  double energy_now = energy(problem, now, how.budget);
  PositionIndex peak_at = now.possible && now.peak > how.budget ? now.peak_at : kNone;
  Annealed result;
  result.nearest = {choice, now};
  double least = energy_now;
  if (now.possible && now.peak <= how.budget) result.best = Found{choice, now};
  const std::uint64_t from = timeline.effort();
  while (!problem.slots.empty()) {
    const std::uint64_t used = timeline.effort() - from;
    if (used >= how.effort || (how.stop != nullptr && how.stop->load(std::memory_order_relaxed))) break;
    const double part = static_cast<double>(used) / static_cast<double>(how.effort);
    const double heat = how.hot * std::pow(how.cold / how.hot, part);
    moves.make(choice, peak_at);
    const Outcome next = timeline.run(choice, how.budget);
    const double energy_next = energy(problem, next, how.budget);
    if (energy_next > energy_now && moves.part() >= std::exp((energy_now - energy_next) / heat)) {
      moves.take_back();
      continue;
    }
    now = next;
    energy_now = energy_next;
    peak_at = now.peak > how.budget ? now.peak_at : kNone;
    if (now.peak <= how.budget && (!result.best || now.seconds < result.best->outcome.seconds))
      result.best = Found{choice, now};
    if (energy_now < least) {
      least = energy_now;
      result.nearest = {choice, now};
    }
  }
  return result;
}

}  // namespace ullage::plan
