// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/planner.h"

#include "ullage/plan/search/solver.h"

#include <algorithm>

namespace ullage::plan {
namespace {

Plan fitting(const Step& step, Bytes budget, const Floor& floor) {
  Plan plan;
  plan.outcome = Plan::Outcome::Fits;
  plan.budget = budget;
  plan.peak = plan.plain_peak = step.peak;
  plan.step = step.seconds;
  plan.least = std::min(floor.bytes, step.peak);
  plan.least_set_by = floor.set_by;
  return plan;
}

Plan infeasible(const Step& step, const Ask& ask, Bytes least, const std::string& set_by) {
  Plan plan;
  plan.outcome = Plan::Outcome::Infeasible;
  plan.budget = ask.budget;
  plan.peak = plan.plain_peak = step.peak;
  plan.step = step.seconds;
  plan.least = least;
  plan.least_set_by = set_by;
  return plan;
}

// Budgets from the floor to just below the plain peak, each the same number of bytes above the one before.
std::vector<Bytes> grid(const Step& step, const Floor& floor, std::size_t points) {
  std::vector<Bytes> budgets;
  const Bytes room = saturating_sub(step.peak, floor.bytes);
  for (std::size_t i = 0; i < points; ++i) budgets.push_back(floor.bytes + room * i / points);
  return budgets;
}

// Replaces a plan by the plan of a smaller budget if that one is cheaper, so that a larger budget never costs more.
std::vector<Plan> made_monotone(std::vector<Plan> plans) {
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i - 1].outcome == Plan::Outcome::Infeasible) continue;
    if (plans[i].outcome != Plan::Outcome::Infeasible && plans[i].overhead <= plans[i - 1].overhead) continue;
    const Bytes budget = plans[i].budget;
    plans[i] = plans[i - 1];
    plans[i].budget = budget;
  }
  return plans;
}

// The search for one budget, without results of searches for other budgets.
class Search final {
 public:
  Search(const Step& step, const Ask& ask) : step_(step), ask_(ask), solver_(step, ask, ask.budget) {}

  const Floor& floor() const { return solver_.floor(); }
  Bytes least() const { return std::min(solver_.least(), step_.peak); }
  void start_from(const Search& fewer) {
    if (fewer.found_) solver_.start_from(fewer.solver_, *fewer.found_);
  }

  std::optional<Plan> at(std::uint64_t effort, const std::function<bool(const Plan&)>& better) {
    const Bytes budget = ask_.budget;
    if (step_.peak <= budget) return fitting(step_, budget, floor());
    const std::function<bool(const Found&)> tell = [&](const Found& found) {
      const Result<Plan> plan = solver_.plan_of(found, budget);
      return !plan || better(*plan);
    };
    // Below the floor no plan exists. The search then runs at the floor, only to find the least peak.
    const bool hopeless = budget < floor().bytes;
    found_ = solver_.solve(std::max(budget, floor().bytes), hopeless ? effort / 4 : effort,
                           better && !hopeless ? tell : std::function<bool(const Found&)>{});
    if (!found_ || hopeless) return std::nullopt;
    Result<Plan> plan = solver_.plan_of(*found_, budget);
    if (!plan) return std::nullopt;
    return std::move(*plan);
  }

 private:
  const Step& step_;
  Ask ask_;
  Solver solver_;
  std::optional<Found> found_;
};

struct Answer {
  std::optional<Plan> plan;
  Floor floor;
  Bytes least;
};

// Searches so that more levers never cost more. First it searches without spill and state, exactly as if they were not
// allowed. The search with all levers then starts from that result.
Answer answer(const Step& step, const Ask& ask, const std::function<bool(const Plan&)>& better) {
  Search all(step, ask);
  Answer best{std::nullopt, all.floor(), {}};
  bool on = true;
  const auto tell = [&](const Plan& plan) {
    if (on && (!best.plan || plan.overhead < best.plan->overhead)) on = better(plan);
    return on;
  };
  const std::function<bool(const Plan&)> on_better = better ? tell : std::function<bool(const Plan&)>{};
  const bool copies = ask.levers.spill || ask.levers.state;
  Ask fewer = ask;
  fewer.levers.spill = fewer.levers.state = false;
  std::optional<Search> without;
  if (copies && (ask.levers.recompute || ask.levers.batch_norm)) without.emplace(step, fewer);
  const bool both = without && without->floor().bytes <= ask.budget && ask.budget < step.peak;
  if (both) {
    best.plan = without->at(ask.effort, on_better);
    all.start_from(*without);
  }
  if (!on) return best;
  std::optional<Plan> plan = all.at(both && best.plan ? ask.effort / 2 : ask.effort, on_better);
  best.least = all.least();
  if (!best.plan || (plan && plan->overhead < best.plan->overhead)) best.plan = std::move(plan);
  if (best.plan) {
    best.plan->least = std::min(best.floor.bytes, step.peak);
    best.plan->least_set_by = best.floor.set_by;
  }
  return best;
}

}  // namespace

Plan make_plan(const Step& step, const Ask& ask, const std::function<bool(const Plan&)>& better) {
  Answer found = answer(step, ask, better);
  if (found.plan) return std::move(*found.plan);
  // Finds a budget that would do: the least peak that was seen, or up to five times 2 % more. A plan is made for it, so
  // that the answer is true.
  Plan none = infeasible(step, ask, step.peak, found.floor.set_by);
  constexpr int kMostTries = 6;
  Bytes least = std::max(found.least, ask.budget);
  for (int i = 0; i < kMostTries && least < step.peak; ++i, least += least / 50) {
    if (ask.stop != nullptr && ask.stop->load()) break;
    Ask again = ask;
    again.budget = least;
    if (!answer(step, again, {}).plan) continue;
    none.least = least;
    break;
  }
  return none;
}

std::vector<Plan> plan_curve(const Step& step, const Ask& ask, std::size_t points) {
  const Floor floor = Solver(step, ask, Bytes{}).floor();
  std::vector<Bytes> budgets = grid(step, floor, points);
  if (ask.budget > Bytes{} && ask.budget < step.peak) budgets.push_back(ask.budget);
  budgets.push_back(step.peak);
  std::sort(budgets.begin(), budgets.end());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  Solver solver(step, ask, budgets.front());
  std::vector<Plan> plans;
  // From the largest budget down: each search also starts from what those before it found.
  for (std::size_t i = budgets.size(); i-- > 0;) {
    if (step.peak <= budgets[i]) {
      plans.push_back(fitting(step, budgets[i], floor));
      continue;
    }
    const std::optional<Found> found = solver.solve(std::max(budgets[i], floor.bytes), ask.effort / 4, {});
    const Result<Plan> plan = found ? solver.plan_of(*found, budgets[i]) : Result<Plan>(Error{});
    if (plan) {
      plans.push_back(*plan);
      continue;
    }
    Ask none = ask;
    none.budget = budgets[i];
    plans.push_back(infeasible(step, none, floor.bytes, floor.set_by));
  }
  std::reverse(plans.begin(), plans.end());
  return made_monotone(std::move(plans));
}

}  // namespace ullage::plan
