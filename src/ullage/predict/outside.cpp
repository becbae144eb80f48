// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/outside.h"

#include "ullage/predict/charges.h"

#include <algorithm>
#include <cmath>

namespace ullage::predict {
namespace {

// The kernel counts resident pages per processor in batches of 64 pages, so two readings may differ by this many bytes
// without a reason.
constexpr double kRise = 262144;

// The bytes measured outside the pool, less the peak of the charges. If no such figure was recorded, the process's peak
// less the pool's.
Bytes measured(const trace::Take& take) {
  const trace::ProcessFigures& process = take.process;
  const Bytes all =
      process.outside_peak > Bytes{} ? process.outside_peak : saturating_sub(process.peak, process.pool_resident_peak);
  return saturating_sub(all, charges_peak(take));
}

// The steepest rise, in bytes per unit of the knob; 0 unless every step of the knob raises the figure by more than
// kRise.
double slope(const std::vector<double>& figures, const std::vector<std::int64_t>& values, std::size_t stride,
             std::size_t lines) {
  double steepest = 0;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t begin = stride == 1 ? line * values.size() : line;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double rise = figures[begin + (i + 1) * stride] - figures[begin + i * stride];
      if (rise <= kRise) return 0;
      steepest = std::max(steepest, rise / double(values[i + 1] - values[i]));
    }
  }
  return steepest;
}

// Were the takes made in one process? A rehearsal does that, and only a rehearsal writes these fields. The figures then
// rise because the process warms up, whatever the knob is.
bool of_one_process(const trace::TraceFile& file) {
  return !file.phases_left_out.empty() || !file.choices.empty() || !file.sides.empty();
}

}  // namespace

Outside outside_at(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs,
                   const trace::Take& evaluated) {
  std::vector<double> figures;
  for (const std::size_t take : sequence.order) figures.push_back(double(measured(file.takes[take]).count));
  double most = *std::ranges::max_element(figures);
  const bool known = most > 0;
  const std::vector<Grid::Axis>& axes = sequence.grid.axes;
  for (std::size_t axis = 0; axis < axes.size() && !of_one_process(file); ++axis) {
    const std::size_t columns = axes.size() == 2 ? axes[1].values.size() : 1;
    const std::size_t stride = axis == 0 ? columns : 1;
    const double rise = slope(figures, axes[axis].values, stride, figures.size() / axes[axis].values.size());
    const std::int64_t at = std::ranges::find(knobs, axes[axis].name, &Knob::name)->value;
    most += std::max(0.0, rise * double(at - axes[axis].values.back()));
  }
  constexpr double kMostBytes = 1e18;
  Outside outside;
  outside.known = known;
  outside.program = Bytes{std::uint64_t(std::ceil(std::min(most, kMostBytes)))} + kChance;
  outside.charged = charges_peak(evaluated);
  return outside;
}

Outside outside_of(const trace::Take& take) {
  const Bytes program = measured(take);
  return {program + kChance, charges_peak(take), program > Bytes{}};
}

}  // namespace ullage::predict
