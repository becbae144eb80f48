// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/largest.h"

#include "ullage/predict/evaluation.h"
#include "ullage/predict/lift.h"
#include "ullage/predict/outside.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace ullage::predict {
namespace {

constexpr std::int64_t kMostSteps = std::int64_t{1} << 30;  // no search goes beyond this many steps
constexpr std::int64_t kNeighbours = 2;

// The values that a search may try: `least`, `least + step` and so on.
struct Ladder {
  std::int64_t least = 0, step = 0;
};

Ladder ladder_of(const std::vector<std::int64_t>& values) {
  Ladder ladder{values[0], 0};
  for (std::size_t i = 1; i < values.size(); ++i) ladder.step = std::gcd(ladder.step, values[i] - values[0]);
  return ladder;
}

// The answer for one value of the ladder.
struct Rung {
  bool known = false;  // the takes suffice for it
  bool fits = false;
  Bytes process_peak;
  Law law = Law::Exact;
};

class LadderSearch final {
 public:
  // `moved`: the knobs that get the value that is tried; the others stay as in `at`.
  LadderSearch(const trace::TraceFile& file, const Sequence& sequence, std::vector<Knob> at,
               std::vector<std::string> moved, Ladder ladder, Bytes memory)
      : file_(file),
        sequence_(sequence),
        at_(std::move(at)),
        moved_(std::move(moved)),
        ladder_(ladder),
        memory_(memory) {}

  LargestThatFits run() {
    LargestThatFits found;
    found.knob = moved_.front();
    if (!good(0)) {
      const Rung& least = answer(0);
      found.process_peak = least.process_peak;
      found.law = least.law;
      found.more_may_fit = !least.known;
      return found;
    }
    std::int64_t low = 0, high = 1;
    while (high < kMostSteps && good(high)) {
      low = high;
      high *= 2;
    }
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (good(middle) ? low : high) = middle;
    }
    // A larger value may need less memory, because a kernel takes another path. Tries a few values above the best.
    for (std::int64_t i = low + 1; i <= low + kNeighbours; ++i) {
      if (good(i)) low = i;
    }
    const Rung& best = answer(low);
    found.value = value(low);
    found.process_peak = best.process_peak;
    found.law = best.law;
    found.more_may_fit = !answer(low + 1).known || low >= kMostSteps;
    return found;
  }

 private:
  std::int64_t value(std::int64_t steps) const { return ladder_.least + steps * ladder_.step; }
  bool good(std::int64_t steps) { return answer(steps).known && answer(steps).fits; }

  const Rung& answer(std::int64_t steps) {
    const auto [place, is_new] = known_.try_emplace(steps);
    if (is_new) place->second = look(value(steps));
    return place->second;
  }
  Rung look(std::int64_t value) {
    std::vector<Knob> at = at_;
    for (const std::string& knob : moved_) std::ranges::find(at, knob, &Knob::name)->value = value;
    const auto evaluated = evaluate_take(file_, sequence_, at);
    const auto* found = std::get_if<Evaluation>(&evaluated);
    if (found == nullptr || !crossings(file_, sequence_, found->take).empty()) return {};
    Rung answer;
    answer.known = true;
    const std::vector<Slack> allowed = slack_of_ops(file_, sequence_, found->take);
    if (std::ranges::any_of(allowed, [](const Slack& one) { return one.bytes >= kNoBound; })) return {};
    const Outside outside = outside_at(file_, sequence_, at, found->take);
    answer.process_peak = process_peak(found->take, outside, allowed);
    answer.fits = answer.process_peak <= memory_;
    const bool lifted = !allowed.empty() && process_peak(found->take, outside, {}) < answer.process_peak;
    answer.law = found->unordered.empty() && !found->charges_bound && !lifted ? Law::Exact : Law::Bound;
    return answer;
  }

  const trace::TraceFile& file_;
  const Sequence& sequence_;
  const std::vector<Knob> at_;
  const std::vector<std::string> moved_;
  const Ladder ladder_;
  const Bytes memory_;
  std::map<std::int64_t, Rung> known_;  // by the number of steps above ladder_.least
};

}  // namespace

std::vector<LargestThatFits> largest_that_fits(const trace::TraceFile& file, const Sequence& sequence,
                                               const std::vector<Knob>& at, Bytes memory) {
  std::vector<LargestThatFits> found;
  for (const Grid::Axis& axis : sequence.grid.axes) {
    found.push_back(LadderSearch(file, sequence, at, {axis.name}, ladder_of(axis.values), memory).run());
  }
  return found;
}

std::optional<LargestSquare> largest_square(const trace::TraceFile& file, const Sequence& sequence,
                                            const std::vector<Knob>& at, Bytes memory) {
  std::optional<Ladder> common;
  for (const std::string& side : file.sides) {
    const auto axis = std::ranges::find(sequence.grid.axes, side, &Grid::Axis::name);
    if (axis == sequence.grid.axes.end()) return std::nullopt;
    const Ladder own = ladder_of(axis->values);
    if (!common) common = own;
    if (common->step != own.step || (common->least - own.least) % own.step != 0) return std::nullopt;
    common->least = std::max(common->least, own.least);
  }
  if (!common) return std::nullopt;
  return LargestSquare{file.sides, LadderSearch(file, sequence, at, file.sides, *common, memory).run()};
}

}  // namespace ullage::predict
