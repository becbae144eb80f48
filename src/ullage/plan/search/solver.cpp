// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/solver.h"

#include "ullage/plan/problem/emission.h"
#include "ullage/plan/search/ahead.h"
#include "ullage/plan/search/lever_uses.h"
#include "ullage/plan/search/policies.h"
#include "ullage/plan/verify/verifier.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ullage::plan {
namespace {

// The settings of one annealing. A search for a budget runs kFirst from one start of each kind except the policies.
// Then it runs the two kRounds from the best choice so far. The first of them is hot enough to leave that choice, the
// second is cool. The heat is relative to the cost of the start, because a plan that costs more has dearer values to
// exchange. Only the last round adds spills: if the others could evict each value in two ways, they would have too many
// choices to search. While no choice fits, every round may spill.
struct Round {
  double effort;  // the part of the whole effort
  double hot;     // relative to the cost of the start
  double cold;    // as Annealing::cold
  bool copies;
};
constexpr Round kFirst = {0.05, 0.01, 2e-5, false};
constexpr Round kRounds[] = {{0.65, 0.10, 1e-5, false}, {0.20, 0.01, 1e-5, true}};
constexpr double kLeastHot = 2e-4;  // as Annealing::hot

// Each search for a start that goes from choice to choice ends after so many simulated ops (SearchEnd), in about a
// second. A GPT of 24 layers needs less. One of 60 layers was planned in 13 s in place of 40, with +5.4 % in place of
// +5.0 %. A step of 1,000 time steps of two LSTM cells was planned in 10 s in place of more than 400.
constexpr std::uint64_t kEffortToStart = 40'000'000;

// A search tries each slot about so often at most, so that a step of few ops is planned in little time. Of 30 plans of
// steps with 130 to 320 ops, 27 were those of the whole effort, one was 0.1 % dearer and two were cheaper.
constexpr std::uint64_t kTriesOfASlot = 5000;

// The time that a schedule adds to the step if it waits for all copies.
Seconds cost_of(const Verified& verified, const Rates& rates) {
  const auto moves = static_cast<double>(verified.kept + verified.spills + verified.restores);
  return {verified.recomputes.count + static_cast<double>(verified.written.count) / rates.write +
          static_cast<double>(verified.read.count) / rates.read + rates.each.count * moves};
}

std::tuple<ValueIndex, OpIndex, bool> slot_key(const Problem& problem, const Problem::Slot& slot) {
  return {problem.values[slot.value].value, problem.positions[slot.position].op, slot.last};
}

}  // namespace

Solver::Solver(const Step& step, const Ask& ask, Bytes least)
    : step_(step),
      ask_(ask),
      problem_(problem_of(step, ask.levers, ask.rates, least)),
      floor_(floor_of(problem_)),
      timeline_(problem_) {}

const Found* Solver::start_for(const std::vector<Found>& among, std::int64_t budget) const {
  const auto less = [&](const Found& a, const Found& b) {
    return energy(problem_, a.outcome, budget) < energy(problem_, b.outcome, budget);
  };
  const auto least = std::min_element(among.begin(), among.end(), less);
  return least == among.end() ? nullptr : &*least;
}

// Makes all choices by rules before any is improved, because which of them is best depends on the budget. Repeats this
// only for a smaller budget than before.
void Solver::find_starts(std::int64_t budget) {
  if (budget >= started_for_) return;
  started_for_ = budget;
  simple_ = simple_choices(problem_, timeline_, budget);
  const SearchEnd end(timeline_, kEffortToStart, ask_.stop);
  greedy_ = greedy(problem_, timeline_, plain_choice(problem_), budget, end);
  policies_.clear();
  try_policies(problem_, timeline_, budget, end,
               [this](std::size_t, const Choice& choice, const Outcome& outcome) { keep_policy(choice, outcome); });
  for (const std::vector<Found>* starts : {&simple_, &greedy_, &policies_})
    for (const Found& found : *starts) least_ = std::min(least_, found.outcome.peak);
}

void Solver::keep_policy(const Choice& choice, const Outcome& outcome) {
  const auto beats = [](const Outcome& a, const Outcome& b) { return a.peak <= b.peak && a.seconds <= b.seconds; };
  for (const Found& found : policies_)
    if (beats(found.outcome, outcome)) return;
  std::erase_if(policies_, [&](const Found& found) { return beats(outcome, found.outcome); });
  policies_.push_back({choice, outcome});
}

// Slots of the two problems correspond if they are of the same value after the same op. A slot that the other problem
// does not have gets what plain execution does.
void Solver::start_from(const Solver& other, const Found& found) {
  std::map<std::tuple<ValueIndex, OpIndex, bool>, After> known;
  for (const SlotIndex i : found.choice.after.ids())
    known[slot_key(other.problem_, other.problem_.slots[i])] = found.choice.after[i];
  std::map<ValueIndex, std::uint8_t> again;
  for (const MovedIndex v : found.choice.again.ids()) again[other.problem_.values[v].value] = found.choice.again[v];
  Choice choice = plain_choice(problem_);
  for (const SlotIndex i : choice.after.ids()) {
    const auto it = known.find(slot_key(problem_, problem_.slots[i]));
    if (it != known.end()) choice.after[i] = it->second;
  }
  for (const MovedIndex v : choice.again.ids()) {
    const auto it = again.find(problem_.values[v].value);
    if (it != again.end()) choice.again[v] = it->second;
  }
  const Outcome outcome = timeline_.run(choice, found.outcome.peak);
  if (outcome.possible) found_.push_back({std::move(choice), outcome});
}

Annealed Solver::run(const Found& start, Annealing how) {
  how.stop = ask_.stop;
  how.seed = ask_.seed * 0x9e3779b97f4a7c15ull + ++runs_;
  Annealed result = anneal(problem_, timeline_, start, how);
  if (result.nearest.outcome.possible) least_ = std::min(least_, result.nearest.outcome.peak);
  if (result.best) least_ = std::min(least_, result.best->outcome.peak);
  return result;
}

std::optional<Found> Solver::solve(Bytes budget, std::uint64_t effort,
                                   const std::function<bool(const Found&)>& better) {
  const auto target = static_cast<std::int64_t>(budget.count);
  effort = std::min(effort, kTriesOfASlot * problem_.slots.size() * problem_.positions.size());
  find_starts(target);
  std::vector<Found> foreseen = foresight(problem_, timeline_, target);
  for (const Found& found : foreseen) least_ = std::min(least_, found.outcome.peak);
  std::optional<Found> best;  // the cheapest that fits
  std::optional<Found> last;  // the one with the least energy
  const auto less = [&](const Found& a, const Found& b) {
    return energy(problem_, a.outcome, target) < energy(problem_, b.outcome, target);
  };
  // Runs one round. Returns false if the search is to end.
  const auto look = [&](const Found& from, const Round& round) {
    const double cost = from.outcome.seconds / std::max(1e-9, step_.in_ops.count);
    Annealing how{.budget = target, .hot = std::max(kLeastHot, round.hot * cost), .cold = round.cold};
    how.copies = round.copies || !best;
    how.effort = static_cast<std::uint64_t>(static_cast<double>(effort) * round.effort);
    Annealed result = run(from, how);
    if (!last || less(result.nearest, *last)) last = result.nearest;
    if (!result.best || (best && best->outcome.seconds <= result.best->outcome.seconds)) return true;
    best = std::move(result.best);
    return !better || better(*best);
  };
  for (const std::vector<Found>* starts : {&simple_, &greedy_, &policies_, &foreseen, &found_})
    for (const Found& found : *starts)
      if (found.outcome.peak <= target && (!best || found.outcome.seconds < best->outcome.seconds)) best = found;
  bool on = !best || !better || better(*best);
  for (const std::vector<Found>* starts : {&simple_, &greedy_, &foreseen, &found_})
    if (const Found* start = start_for(*starts, target); on && start != nullptr) on = look(Found(*start), kFirst);
  for (const Round& round : kRounds)
    if (on && last) on = look(best ? *best : *last, round);
  if (last) found_.push_back(best ? *best : *last);
  return best;
}

Result<Plan> Solver::plan_of(const Found& found, Bytes budget) {
  Record record;
  timeline_.run(found.choice, static_cast<std::int64_t>(budget.count), record);
  Plan plan;
  plan.outcome = Plan::Outcome::Planned;
  plan.budget = budget;
  plan.plain_peak = step_.peak;
  plan.step = step_.seconds;
  plan.least = floor_.bytes;
  plan.least_set_by = floor_.set_by;
  plan.schedule = emit(problem_, found.choice, record);
  plan.schedule = with_copies_ahead(step_, plan.schedule, budget, ask_.rates);
  plan.levers = lever_uses(step_, plan.schedule, ask_.rates);
  ULLAGE_TRY_VALUE(Verified verified, verify(step_, plan.schedule, budget));
  plan.peak = verified.peak;
  plan.overhead = cost_of(verified, ask_.rates);
  return plan;
}

}  // namespace ullage::plan
