// SPDX-License-Identifier: Apache-2.0
#include "baselines.h"

#include "ullage/plan/problem/emission.h"
#include "ullage/plan/search/policies.h"
#include "ullage/plan/verify/verifier.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ullage::plan {
namespace {

struct Best {
  std::optional<Found> found;      // within the budget
  std::int64_t least = INT64_MAX;  // the least peak of all settings tried
};

Baseline told(const Step& step, const Ask& ask, const Problem& problem, Timeline& timeline, const Best& best) {
  Baseline baseline;
  if (best.least != INT64_MAX) baseline.peak = Bytes{static_cast<std::uint64_t>(best.least)};
  if (!best.found) return baseline;
  Record record;
  const Outcome outcome = timeline.run(best.found->choice, static_cast<std::int64_t>(ask.budget.count), record);
  Schedule schedule = emit(problem, best.found->choice, record);
  const Result<Verified> verified = verify(step, schedule, ask.budget);
  if (!verified) return baseline;
  baseline.schedule = std::move(schedule);
  baseline.peak = verified->peak;
  baseline.overhead = {outcome.seconds};
  return baseline;
}

}  // namespace

std::vector<Baseline> baselines(const Step& step, const Ask& ask) {
  const Problem problem = problem_of(step, ask.levers, ask.rates, ask.budget);
  Timeline timeline(problem);
  const auto budget = static_cast<std::int64_t>(ask.budget.count);
  std::array<Best, kPolicies.size()> best;
  try_policies(problem, timeline, budget, SearchEnd(timeline, Ask{}.effort, ask.stop),
               [&](std::size_t policy, const Choice& choice, const Outcome& outcome) {
                 Best& it = best[policy];
                 it.least = std::min(it.least, outcome.peak);
                 const bool better = !it.found || outcome.seconds < it.found->outcome.seconds;
                 if (outcome.peak <= budget && better) it.found = Found{choice, outcome};
               });
  std::vector<Baseline> all;
  for (std::size_t policy = 0; policy < best.size(); ++policy) {
    all.push_back(told(step, ask, problem, timeline, best[policy]));
    all.back().name = kPolicies[policy];
  }
  return all;
}

}  // namespace ullage::plan
