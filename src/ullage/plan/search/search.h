// SPDX-License-Identifier: Apache-2.0
#pragma once

// Searches for a cheap choice that stays within a budget: by simple rules, greedily, or by simulated annealing. Each
// choice is judged by a simulation of the whole step (Timeline).

#include "ullage/plan/problem/timeline.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::plan {

struct Found {
  Choice choice;
  Outcome outcome;
};

// Ends a search that goes from choice to choice, because a step of many ops has more of them than anybody can wait for.
// Other searches are not ended: they simulate the step a fixed number of times.
class SearchEnd final {
 public:
  // `effort` as Ask::effort, `stop` as Ask::stop.
  SearchEnd(const Timeline& timeline, std::uint64_t effort, const std::atomic<bool>* stop)
      : timeline_(timeline), from_(timeline.effort()), effort_(effort), stop_(stop) {}

  // Gives the next search as much effort again.
  void begin() { from_ = timeline_.effort(), other_ = 0; }
  // Counts work that is no simulation.
  void add(std::uint64_t work) { other_ += work; }
  bool is_here() const {
    return timeline_.effort() - from_ + other_ > effort_ ||
           (stop_ != nullptr && stop_->load(std::memory_order_relaxed));
  }
  // How many values to take out of `values` between two simulations, so that all can be taken out before the end.
  std::size_t at_once(std::size_t values, std::size_t positions) const {
    const std::size_t simulations = std::max<std::size_t>(1, effort_ / 2 / std::max<std::size_t>(1, positions));
    return std::max<std::size_t>(1, (values + simulations - 1) / simulations);
  }

 private:
  const Timeline& timeline_;
  std::uint64_t from_;
  std::uint64_t effort_;
  const std::atomic<bool>* stop_;
  std::uint64_t other_ = 0;
};

// The figure that the searches minimise: the cost as a part of the time in ops, plus a penalty if the choice does not
// fit. The penalty grows with the excess of the peak, and with the area of the level above the budget. The area also
// falls when a move lowers one of several equal peaks; the peak alone would not. 1e9 if the choice is not possible.
double energy(const Problem& problem, const Outcome& outcome, std::int64_t budget);

// Lowers the level move by move. Each time takes the move with the least cost per byte taken off the peak and off the
// area above `target`. Returns all choices on the way, `start` first.
std::vector<Found> greedy(const Problem& problem, Timeline& timeline, const Choice& start, std::int64_t target,
                          const SearchEnd& end);

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
