// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks for a cheap choice that stays within a budget: from a start, by moves on one or several values, each judged by
// the whole timeline.

#include "ullage/plan/problem/timeline.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::plan {

struct Found {
  Choice choice;
  Outcome outcome;
};

// What the searches make small: seconds as a part of the step, and a penalty where it does not fit: by how much the
// peak is over, and the area, so that a move is seen that helps in one of several places.
double energy(const Problem& problem, const Outcome& outcome, std::int64_t budget);

// Lowers the level step by step, each time by the move that costs least for what it takes off the peak or off the area
// above `target`. All choices on the way, `start` first.
std::vector<Found> greedy(const Problem& problem, Timeline& timeline, const Choice& start, std::int64_t target);

// Choices by one rule alone: all that is cheap enough by the byte goes, and what it is made from is held or not.
std::vector<Found> simple_choices(const Problem& problem, Timeline& timeline, std::int64_t target);

struct Annealing {
  std::int64_t budget = 0;
  std::uint64_t effort = 0;
  std::uint64_t seed = 1;
  double hot = 0.004;  // of the step: what is accepted at first
  double cold = 2e-5;
  bool copies = true;                       // may spill more than the start does
  const std::atomic<bool>* stop = nullptr;  // as Ask::stop
};
struct Annealed {
  std::optional<Found> best;  // within the budget
  Found nearest;              // least energy, where none is within the budget
};
Annealed anneal(const Problem& problem, Timeline& timeline, const Found& start, const Annealing& how);

}  // namespace ullage::plan
