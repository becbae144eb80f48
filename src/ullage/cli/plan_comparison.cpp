// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/plan_comparison.h"

#include "ullage/cli/words.h"

#include <algorithm>
#include <optional>

namespace ullage::cli {
namespace {

using Outcome = plan::Plan::Outcome;
using Results = plan::Lever::Results;

constexpr const char* kClasses = "rounding and different can be allowed, with a comma between";

}  // namespace

bool AllowedClasses::allows(Results results) const {
  return results == Results::BitEqual || (results == Results::Rounding && rounding) ||
         (results == Results::Different && different);
}

Result<AllowedClasses> parse_classes(const std::string& text) {
  AllowedClasses allowed;
  for (const std::string& word : between_commas(text)) {
    if (word == plan::word_of(Results::Rounding)) {
      allowed.rounding = true;
    } else if (word == plan::word_of(Results::Different)) {
      allowed.different = true;
    } else if (word.empty()) {
      return wrong("a word is missing in '" + text + "'; " + kClasses, "--allow");
    } else {
      return wrong(
          "'" + word + "' is no class of results" + suggestion(word, {"rounding", "different"}) + "; " + kClasses,
          "--allow");
    }
  }
  return allowed;
}

Results results_of(std::span<const trace::ResultChange> changes) {
  Results worst = Results::BitEqual;
  for (const trace::ResultChange& change : changes) {
    const bool different = change.results == plan::word_of(Results::Different);
    worst = std::max(worst, different ? Results::Different : Results::Rounding);
  }
  return worst;
}

report::ComparedWay way_of(const report::PlanReport& report, std::span<const trace::ResultChange> changes) {
  const plan::Plan& plan = report.planned->plan;
  report::ComparedWay way;
  way.file = report.file, way.results = results_of(changes);
  for (const trace::ResultChange& change : changes) way.changes.push_back(change.what);
  way.outcome = plan.outcome, way.plain_peak = plan.plain_peak, way.peak = plan.peak;
  way.least = report.beside.memory_for(plan.least), way.step = plan.step, way.overhead = plan.overhead;
  return way;
}

std::size_t choose(std::vector<report::ComparedWay>& ways, const AllowedClasses& allowed) {
  std::optional<std::size_t> best;
  std::size_t least = 0;
  // A bit-equal recording that fits without a plan is chosen before all others. A recording that changes the results is
  // not chosen instead, however much less time it takes.
  const auto fits_as_it_is = [](const report::ComparedWay& way) {
    return way.results == Results::BitEqual && way.outcome == Outcome::Fits;
  };
  for (std::size_t i = 0; i < ways.size(); ++i) {
    report::ComparedWay& way = ways[i];
    way.allowed = allowed.allows(way.results);
    if (!way.allowed) continue;
    if (!ways[least].allowed || way.least < ways[least].least) least = i;
    if (way.outcome == Outcome::Infeasible) continue;
    const bool better = !best || (fits_as_it_is(way) && !fits_as_it_is(ways[*best])) ||
                        (fits_as_it_is(way) == fits_as_it_is(ways[*best]) && way.seconds() < ways[*best].seconds());
    if (better) best = i;
  }
  if (!best) return least;
  ways[*best].chosen = true;
  return *best;
}

}  // namespace ullage::cli
