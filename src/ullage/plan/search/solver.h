// SPDX-License-Identifier: Apache-2.0
#pragma once

// For each budget that is asked for, runs the searches of search.h and policies.h in a fixed order. Keeps what they
// found as starts for later budgets.

#include "ullage/base/result.h"
#include "ullage/plan/problem/floor.h"
#include "ullage/plan/search/search.h"

#include <functional>
#include <optional>
#include <vector>

namespace ullage::plan {

class Solver final {
 public:
  // `least`: the smallest budget that will be asked for. `step` must outlive the solver.
  Solver(const Step& step, const Ask& ask, Bytes least);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  const Floor& floor() const { return floor_; }

  // Adds `found` as a start. `other` found it for the same step with fewer levers.
  void start_from(const Solver& other, const Found& found);

  // Returns the cheapest choice found within `budget`, or nothing. Also starts from what was found for other budgets.
  // `effort`: how long annealing searches, as Ask::effort. `better` may be empty. Else it is called with each choice
  // that is better than all before; if it returns false, the search ends.
  std::optional<Found> solve(Bytes budget, std::uint64_t effort, const std::function<bool(const Found&)>& better);

  // The least peak that any search reached.
  Bytes least() const { return Bytes{static_cast<std::uint64_t>(least_)}; }

  // Returns the plan of a choice, if its schedule passes the verifier; else BadArgument with the action that the
  // verifier refused.
  Result<Plan> plan_of(const Found& found, Bytes budget);

 private:
  Annealed run(const Found& start, Annealing how);
  void find_starts(std::int64_t budget);
  void keep_policy(const Choice& choice, const Outcome& outcome);
  // The start with the least energy, or null.
  const Found* start_for(const std::vector<Found>& among, std::int64_t budget) const;

  const Step& step_;
  Ask ask_;
  Problem problem_;
  Floor floor_;
  Timeline timeline_;
  std::vector<Found> simple_, greedy_;  // of simple_choices() and greedy()
  std::vector<Found> policies_;         // of try_policies(): those that no other beats in both peak and seconds
  std::vector<Found> found_;            // the best of each solve(), and those of start_from()
  std::int64_t started_for_ = INT64_MAX;
  std::int64_t least_ = INT64_MAX;
  std::uint64_t runs_ = 0;
};

}  // namespace ullage::plan
