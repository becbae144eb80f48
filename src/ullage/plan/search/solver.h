// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order in which the searches are run for one budget, and what they leave behind for the next one.

#include "ullage/base/result.h"
#include "ullage/plan/problem/floor.h"
#include "ullage/plan/search/search.h"

#include <functional>
#include <optional>
#include <vector>

namespace ullage::plan {

class Solver final {
 public:
  // `least`: the smallest budget that will be asked for. The step must outlive it.
  Solver(const Step& step, const Ask& ask, Bytes least);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  const Floor& floor() const { return floor_; }

  // Also starts from what another one, of the same step with fewer levers, found.
  void start_from(const Solver& other, const Found& found);

  // The cheapest choice found within `budget`, or nothing. What was found for other budgets is where it starts from.
  // `better` is called with what is better than all before; false ends the search.
  std::optional<Found> solve(Bytes budget, std::uint64_t effort, const std::function<bool(const Found&)>& better);

  // The least peak that any search reached.
  Bytes least() const { return Bytes{static_cast<std::uint64_t>(least_)}; }

  // As a schedule that the verifier has looked at; BadArgument says what it refused.
  Result<Plan> plan_of(const Found& found, Bytes budget);

 private:
  Annealed run(const Found& start, Annealing how);
  void find_starts(std::int64_t budget);
  void keep_policy(const Choice& choice, const Outcome& outcome);
  // The one with the least energy, or null.
  const Found* start_for(const std::vector<Found>& among, std::int64_t budget) const;

  const Step& step_;
  Ask ask_;
  Problem problem_;
  Floor floor_;
  Timeline timeline_;
  std::vector<Found> simple_, greedy_;  // by rules
  std::vector<Found> policies_;         // likewise, what others do: those that nothing is cheaper than at their peak
  std::vector<Found> found_;            // the best of each search
  std::int64_t started_for_ = INT64_MAX;
  std::int64_t least_ = INT64_MAX;
  std::uint64_t runs_ = 0;
};

}  // namespace ullage::plan
