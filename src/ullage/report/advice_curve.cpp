// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/advice_curve.h"

#include "ullage/report/input_history.h"
#include "ullage/trace/meaning/levels.h"

#include <algorithm>
#include <span>

namespace ullage::report {
namespace {

using advise::Curve;

// Cuts the levels into kParts equal parts, and returns the most in each. If there are fewer levels, some stand in
// several parts.
std::vector<Bytes> sampled(std::span<const Bytes> levels) {
  std::vector<Bytes> parts;
  if (levels.empty()) return parts;
  for (std::size_t i = 0; i < Curve::kParts; ++i) {
    const std::size_t from = i * levels.size() / Curve::kParts, to = (i + 1) * levels.size() / Curve::kParts;
    parts.push_back(std::ranges::max(levels.subspan(from, std::max<std::size_t>(to - from, 1))));
  }
  return parts;
}

Bytes most(const std::vector<Bytes>& levels) { return levels.empty() ? Bytes{} : std::ranges::max(levels); }

// Samples each step. Leaves out what comes before the first step.
Curve curve_of(const InputHistory& history, const trace::Levels& levels) {
  std::vector<std::size_t> begins;
  for (const EventId begin : history.known.steps.begins) begins.push_back(begin.value);
  if (begins.empty()) begins.push_back(0);
  begins.push_back(levels.live.size());
  Curve curve;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto part = [&](const std::vector<Bytes>& all) {
      return sampled(std::span(all).subspan(begins[i], begins[i + 1] - begins[i]));
    };
    curve.steps.push_back({part(levels.live), part(levels.reserved)});
  }
  return curve;
}

}  // namespace

std::optional<advise::Curve> curve_of(const trace::Input& input, Bytes peak) {
  std::optional<Curve> curve;
  Bytes highest;
  each_history(input, [&](const InputHistory& history) {
    const trace::Levels levels = trace::levels(history.trace());
    const Bytes its = most(levels.reserved);
    if (levels.live.empty() || (curve && its <= highest)) return;
    curve = curve_of(history, levels);
    highest = its;
  });
  if (curve) curve->beside = saturating_sub(peak, highest);
  return curve;
}

advise::Curve curve_of(const Table<plan::OpIndex, Bytes>& levels, std::size_t steps, Bytes beside) {
  Curve curve;
  curve.beside = beside;
  curve.steps.resize(std::max<std::size_t>(steps, 1));
  const std::vector<Bytes> parts = sampled(std::vector<Bytes>(levels.begin(), levels.end()));
  curve.steps.back() = {parts, parts};  // a plan's step has no cached bytes: tensors and held bytes are the same
  return curve;
}

}  // namespace ullage::report
