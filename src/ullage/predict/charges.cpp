// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/charges.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ullage::predict {
namespace {

constexpr std::int64_t kMostCharged = std::int64_t{1} << 60;  // so that two can be added without overflow

std::int64_t bounded_sum(std::int64_t level, std::int64_t more) {
  return std::clamp<std::int64_t>(level + std::clamp(more, -kMostCharged, kMostCharged), 0, kMostCharged);
}

// Evaluates each charge by its law. Returns false if some charge follows no law, or has both signs among the takes.
bool by_law(const trace::TraceFile& file, const Sequence& sequence, Target& target, trace::Take& into) {
  std::vector<std::int64_t> counts(sequence.order.size());
  for (std::size_t i = 0; i < into.charges.size(); ++i) {
    bool gives_back = false;
    for (std::size_t place = 0; place < counts.size(); ++place) {
      counts[place] = file.takes[sequence.order[place]].charges[i].bytes;
      gives_back |= counts[place] < 0;
    }
    if (gives_back) {
      if (std::ranges::any_of(counts, [](std::int64_t c) { return c > 0 || c == INT64_MIN; })) return false;
      for (std::int64_t& count : counts) count = -count;
    }
    const std::optional<std::int64_t> bytes = target.count(into.charges[i].at, counts);
    if (!bytes) return false;
    into.charges[i].bytes = gives_back ? -*bytes : *bytes;
  }
  return true;
}

constexpr int kHighestPower = 3;

// The product of the ratios by which the knobs grow, each to this power; a knob that shrinks counts as 1.
double growth(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to, int power) {
  double times = 1;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    const double ratio = double(to[axis]) / double(std::max<std::int64_t>(from[axis], 1));
    times *= std::pow(std::max(1.0, ratio), power);
  }
  return times;
}

// By charge and take, the bytes that are charged after that charge.
std::vector<std::vector<std::int64_t>> levels_of(const trace::TraceFile& file, std::size_t charges) {
  std::vector<std::vector<std::int64_t>> levels(charges, std::vector<std::int64_t>(file.takes.size()));
  for (std::size_t take = 0; take < file.takes.size(); ++take) {
    std::int64_t level = 0;
    for (std::size_t i = 0; i < charges; ++i) {
      levels[i][take] = level = bounded_sum(level, file.takes[take].charges[i].bytes);
    }
  }
  return levels;
}

// Bytes may grow with the square of a side or a length. A knob may be one if four values of it were run, as a law of a
// side needs, or if two knobs vary. So the square is assumed then. If the bytes grow clearly faster from the smallest
// take to the largest, so does the bound. `level`: by take.
int power_of(const std::vector<std::int64_t>& level, const std::vector<std::vector<std::int64_t>>& knobs,
             const Grid& grid) {
  constexpr double kClearly = 1.02;
  constexpr double kNoise = 4096;  // bytes
  int power = grid.axes.size() > 1 || grid.axes.front().values.size() > 3 ? 2 : 1;
  const auto [smallest, largest] = std::ranges::minmax_element(knobs);
  const double small = double(level[std::size_t(smallest - knobs.begin())]) * kClearly + kNoise;
  const double large = double(level[std::size_t(largest - knobs.begin())]);
  while (power < kHighestPower && large > small * growth(*smallest, *largest, power)) ++power;
  return power;
}

void as_a_bound(const trace::TraceFile& file, const Sequence& sequence, const Target& target, trace::Take& into) {
  std::vector<std::vector<std::int64_t>> knobs;
  for (const trace::Take& take : file.takes) knobs.push_back(sequence.grid.values_of(take.knobs));
  const std::vector<std::vector<std::int64_t>> levels = levels_of(file, into.charges.size());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < into.charges.size(); ++i) {
    std::int64_t most = 0;
    const int power = power_of(levels[i], knobs, sequence.grid);
    for (std::size_t take = 0; take < file.takes.size(); ++take) {
      const double scaled = double(levels[i][take]) * growth(knobs[take], target.knobs(into.charges[i].at), power);
      most = std::max(most, scaled < double(kMostCharged) ? std::int64_t(std::ceil(scaled)) : kMostCharged);
    }
    into.charges[i].bytes = most - before;
    before = most;
  }
}

}  // namespace

Bytes charges_peak(const trace::Take& take) {
  std::int64_t level = 0, peak = 0;
  for (const trace::Charged& charge : take.charges) {
    level = bounded_sum(level, charge.bytes);
    peak = std::max(peak, level);
  }
  return Bytes{std::uint64_t(peak)};
}

bool write_charges(const trace::TraceFile& file, const Sequence& sequence, Target& target, trace::Take& into) {
  if (by_law(file, sequence, target, into)) return true;
  as_a_bound(file, sequence, target, into);
  return false;
}

}  // namespace ullage::predict
