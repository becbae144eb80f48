// SPDX-License-Identifier: Apache-2.0
#pragma once

// Searches for a cheap choice that stays within a budget: by simple rules, greedily, or by simulated annealing. Each
// choice is judged by a simulation of the whole step (Timeline).

#include "ullage/plan/problem/timeline.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::plan {

struct Found {
  Choice choice;
  Outcome outcome;
};

// The figure that the searches minimise: the cost as a part of the time in ops, plus a penalty if the choice does not
// fit. The penalty grows with the excess of the peak, and with the area of the level above the budget. The area also
// falls when a move lowers one of several equal peaks; the peak alone would not. 1e9 if the choice is not possible.
double energy(const Problem& problem, const Outcome& outcome, std::int64_t budget);

// Lowers the level move by move. Each time takes the move with the least cost per byte taken off the peak and off the
// area above `target`. Returns all choices on the way, `start` first.
std::vector<Found> greedy(const Problem& problem, Timeline& timeline, const Choice& start, std::int64_t target);

// Choices by one rule: drop all that costs less than a limit per byte. Tries several limits, with and without holding
// what the dropped values are recomputed from.
std::vector<Found> simple_choices(const Problem& problem, Timeline& timeline, std::int64_t target);

// What a pager with foresight would do. Between two uses it spills every value that may be spilled. Then it keeps as
// many in memory as fit within `target`, those that are used again soonest first (Belady's rule). Empty if nothing may
// be spilled. Where the other searches find nothing that fits, this mostly does, because it can spill everything.
std::vector<Found> foresight(const Problem& problem, Timeline& timeline, std::int64_t target);

struct Annealing {
  std::int64_t budget = 0;   // bytes
  std::uint64_t effort = 0;  // how long to search, as Ask::effort
  std::uint64_t seed = 1;
  double hot = 0.004;                       // the temperature at first, in units of energy()
  double cold = 2e-5;                       // the temperature at the end
  bool copies = true;                       // if false, spills nothing that the start does not spill
  const std::atomic<bool>* stop = nullptr;  // as in Ask
};
struct Annealed {
  std::optional<Found> best;  // the cheapest within the budget
  Found nearest;              // the one with the least energy
};
// Improves `start` by random changes (moves.h). A change that makes things worse is taken with a chance that sinks from
// hot to cold. Deterministic for a seed, unless `stop` ends it.
Annealed anneal(const Problem& problem, Timeline& timeline, const Found& start, const Annealing& how);

}  // namespace ullage::plan
