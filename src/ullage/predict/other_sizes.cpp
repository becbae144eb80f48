// SPDX-License-Identifier: Apache-2.0
// other_sizes(): if takes lie on the wrong side of a threshold, finds the smallest sizes on the right side.
#include "ullage/predict/thresholds.h"

#include <algorithm>

namespace ullage::predict {
namespace {

using trace::OpDetail;
using Values = std::vector<std::int64_t>;  // one for each axis of the grid

constexpr std::int64_t kParts = 64;  // if several knobs move together, the way is divided into this many parts

struct Axis {
  std::int64_t first = 0;  // the least value with the target's remainder that is not below the takes' least value
  std::int64_t step = 1;
  std::int64_t span = 0;   // distance from the first to the last new value, of which there are as many as in the takes
  std::int64_t most = -1;  // the largest number with first + most * step + span below the target; -1 if there is none
};

Axis axis_of(const Grid::Axis& axis, std::int64_t target) {
  Axis result;
  result.step = axis.values[1] - axis.values[0];
  for (std::size_t i = 1; i < axis.values.size(); ++i)
    result.step = std::min(result.step, axis.values[i] - axis.values[i - 1]);
  const std::int64_t remainder = (target - axis.values.front()) % result.step;
  result.first = axis.values.front() + remainder;
  result.span = result.step * static_cast<std::int64_t>(axis.values.size() - 1);
  const std::int64_t room = target - 1 - result.first - result.span;
  if (room >= 0) result.most = room / result.step;
  return result;
}

class SizeSearch final {
 public:
  SizeSearch(const trace::TraceFile& file, const Sequence& sequence, std::span<const Crossing> crossings)
      : file_(file), sequence_(sequence), crossings_(crossings) {}

  // Is every op of a crossing on the target's side if the knobs are at `at`?
  bool serves(const Values& at) const {
    const Evaluator evaluator(sequence_.grid, at);
    return std::all_of(crossings_.begin(), crossings_.end(), [&](const Crossing& crossing) {
      const Rule& rule = rules()[crossing.row];
      if (rule.threshold == kEvery) return false;
      const std::optional<OpDetail> op = op_at(evaluator, crossing.at);
      if (!op) return false;
      const std::vector<std::int64_t> counts = counts_of(*op, rule.quantity);
      return crossing.count < counts.size() &&
             (counts[crossing.count] >= crossing.threshold) == (crossing.target >= crossing.threshold);
    });
  }

 private:
  std::optional<OpDetail> op_at(const Evaluator& evaluator, OpId op) const {
    OpDetail result = file_.takes[sequence_.order[0]].details[op.value];
    std::vector<std::int64_t> counts(sequence_.order.size());
    for (std::size_t use = 0; use < result.uses.size(); ++use) {
      for (std::size_t dimension = 0; dimension < result.uses[use].sizes.size(); ++dimension) {
        for (std::size_t place = 0; place < counts.size(); ++place) {
          const std::vector<OpDetail>& details = file_.takes[sequence_.order[place]].details;
          if (op.value >= details.size() || use >= details[op.value].uses.size()) return std::nullopt;
          const std::vector<std::int64_t>& sizes = details[op.value].uses[use].sizes;
          if (dimension >= sizes.size()) return std::nullopt;
          counts[place] = sizes[dimension];
        }
        const std::optional<std::int64_t> size = evaluator(counts);
        if (!size) return std::nullopt;
        result.uses[use].sizes[dimension] = *size;
      }
    }
    return result;
  }

  const trace::TraceFile& file_;
  const Sequence& sequence_;
  std::span<const Crossing> crossings_;
};

// The first values of the new takes, if the `moved` axes go the part `steps` / `of` of the way from Axis::first to
// first + most * step.
Values start(const std::vector<Axis>& axes, const std::vector<bool>& moved, std::int64_t steps, std::int64_t of) {
  Values values;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t scaled = axes[i].most / of * steps + axes[i].most % of * steps / of;
    values.push_back(axes[i].first + (moved[i] ? scaled * axes[i].step : 0));
  }
  return values;
}

// The least start along the `moved` axes that serves, by bisection; nothing if not even the highest one does. Assumes
// that every start above one that serves also serves.
std::optional<Values> least(const SizeSearch& search, const std::vector<Axis>& axes, const std::vector<bool>& moved) {
  std::int64_t of = kParts;
  if (std::count(moved.begin(), moved.end(), true) == 1)
    of = std::max<std::int64_t>(
        1, axes[static_cast<std::size_t>(std::find(moved.begin(), moved.end(), true) - moved.begin())].most);
  std::int64_t low = 0, high = of;
  if (!search.serves(start(axes, moved, high, of))) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (search.serves(start(axes, moved, middle, of))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return start(axes, moved, high, of);
}

double growth(const std::vector<Axis>& axes, const Values& values) {
  double times = 1;
  for (std::size_t i = 0; i < axes.size(); ++i)
    times *= static_cast<double>(values[i]) / static_cast<double>(std::max<std::int64_t>(1, axes[i].first));
  return times;
}

}  // namespace

std::optional<Grid> other_sizes(const trace::TraceFile& file, const Sequence& sequence,
                                std::span<const Crossing> crossings, const std::vector<Knob>& target) {
  std::vector<Axis> axes;
  for (const Grid::Axis& axis : sequence.grid.axes) {
    const auto knob = std::find_if(target.begin(), target.end(), [&](const Knob& k) { return k.name == axis.name; });
    if (knob == target.end() || axis.values.size() < 2 || knob->value <= axis.values.front()) return std::nullopt;
    axes.push_back(axis_of(axis, knob->value));
    if (axes.back().most < 0) return std::nullopt;
  }
  const SizeSearch search(file, sequence, crossings);
  std::optional<Values> best;
  const std::size_t ways = (std::size_t{1} << axes.size()) - 1;
  for (std::size_t way = 1; way <= ways; ++way) {
    std::vector<bool> moved;
    for (std::size_t i = 0; i < axes.size(); ++i) moved.push_back((way >> i & 1) != 0);
    const std::optional<Values> found = least(search, axes, moved);
    if (found && (!best || growth(axes, *found) < growth(axes, *best))) best = found;
  }
  if (!best) return std::nullopt;
  Grid grid = sequence.grid;
  bool same = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (std::size_t k = 0; k < grid.axes[i].values.size(); ++k) {
      const std::int64_t value = (*best)[i] + static_cast<std::int64_t>(k) * axes[i].step;
      same = same && value == grid.axes[i].values[k];
      grid.axes[i].values[k] = value;
    }
  }
  return same ? std::nullopt : std::optional<Grid>(std::move(grid));
}

}  // namespace ullage::predict
