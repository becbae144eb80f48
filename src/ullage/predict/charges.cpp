// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/charges.h"

#include <algorithm>
#include <cmath>

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

// The factor by which the knobs at the event exceed those of a take; at least 1.
double growth(const trace::Take& take, const Target& target, const Sequence& sequence, EventId event) {
  double times = 1;
  for (std::size_t axis = 0; axis < sequence.grid.axes.size(); ++axis) {
    const Grid::Axis& of = sequence.grid.axes[axis];
    const std::int64_t small = std::ranges::find(take.knobs, of.name, &Knob::name)->value;
    const double ratio = double(target.knobs(event)[axis]) / double(std::max<std::int64_t>(small, 1));
    // Bytes may grow with the square of a side or a length. A knob may be one if four values of it were run, as a law
    // of a side needs, or if two knobs vary. So the square is assumed then (charges.h).
    times *= std::max(1.0, of.values.size() > 3 || sequence.grid.axes.size() > 1 ? ratio * ratio : ratio);
  }
  return times;
}

void as_a_bound(const trace::TraceFile& file, const Sequence& sequence, const Target& target, trace::Take& into) {
  std::vector<std::int64_t> levels(file.takes.size());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < into.charges.size(); ++i) {
    std::int64_t most = 0;
    for (std::size_t take = 0; take < file.takes.size(); ++take) {
      levels[take] = bounded_sum(levels[take], file.takes[take].charges[i].bytes);
      const double scaled = double(levels[take]) * growth(file.takes[take], target, sequence, into.charges[i].at);
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
