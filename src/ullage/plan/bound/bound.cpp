// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/bound.h"

#include "ullage/plan/bound/bound_program.h"

#include <algorithm>
#include <set>
#include <string>

namespace ullage::plan {
namespace {

constexpr std::size_t kFewest = 4;     // points to begin with
constexpr std::size_t kCutRounds = 2;  // the second adds points where the first solution exceeds the budget most
constexpr double kWorthMore = 1.005;   // doubles the points only while that raises the bound by more than this factor

// The most work for one bound: the pivots of all its programs, each times the columns. That is about 10 seconds. A
// U-Net takes a thousandth of it. 1,000 time steps of two LSTM cells would take more; then the bound so far is the
// answer.
constexpr std::uint64_t kMostWork = 1'000'000'000;

// The most bytes that plain execution has present while each op runs.
Table<OpIndex, double> plain_levels(const Step& step, const Spans& spans) {
  Table<OpIndex, double> levels;
  Table<OpIndex, double> change(step.ops.size() + 2, 0);
  double level = double(step.level.count);
  for (const StorageIndex s : step.storages.ids()) {
    if (step.storages[s].from_before) level -= double(step.storages[s].bytes.count);
    if (spans.storages[s].from >= spans.storages[s].until) continue;
    change[spans.storages[s].from] += double(step.storages[s].bytes.count);
    change[spans.storages[s].until] -= double(step.storages[s].bytes.count);
  }
  for (const OpIndex op : step.ops.ids()) {
    level += change[op];
    levels.push_back(level + double(step.ops[op].rise.count));
  }
  return levels;
}

// Divides the ops at which plain execution is over the budget into `parts` of equal length. Returns the highest op of
// each part, ascending.
std::vector<OpIndex> highest(const Table<OpIndex, double>& levels, double budget, std::size_t parts) {
  std::vector<OpIndex> over;
  for (const OpIndex op : levels.ids()) {
    if (levels[op] > budget) over.push_back(op);
  }
  std::set<OpIndex> points;
  parts = std::min(parts, over.size());
  for (std::size_t i = 0; i < parts; ++i) {
    const auto from = over.begin() + std::ptrdiff_t(i * over.size() / parts);
    const auto until = over.begin() + std::ptrdiff_t((i + 1) * over.size() / parts);
    points.insert(*std::max_element(from, until, [&](OpIndex a, OpIndex b) { return levels[a] < levels[b]; }));
  }
  return {points.begin(), points.end()};
}

// Up to `count` ops that exceed the budget most, no two of them close to each other.
std::vector<OpIndex> worst(Table<OpIndex, double> excess, std::size_t count) {
  std::vector<OpIndex> points;
  const auto apart = std::ptrdiff_t(excess.size() / 64);
  while (points.size() < count) {
    const auto most = std::max_element(excess.begin(), excess.end());
    if (*most <= 0) break;
    points.push_back(excess.id_of(most));
    std::fill(most - std::min(apart, most - excess.begin()), most + std::min(apart + 1, excess.end() - most), 0);
  }
  return points;
}

// Both lists together, ascending. Empty if `more` is empty.
std::vector<OpIndex> joined(std::vector<OpIndex> points, const std::vector<OpIndex>& more) {
  if (more.empty()) return {};
  points.insert(points.end(), more.begin(), more.end());
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

}  // namespace

Result<Seconds> lower_bound(const Step& step, const Ask& ask, std::size_t time_points) {
  const Spans spans = spans_of(step);
  const Table<OpIndex, double> levels = plain_levels(step, spans);
  // More points do not always give a tighter bound: half a recompute in each of two windows may do for a whole one. So
  // this tries several sets of points and takes the highest bound.
  Seconds best;
  std::uint64_t work = kMostWork;
  for (std::size_t parts = std::min(kFewest, time_points); parts <= time_points; parts *= 2) {
    const Seconds before = best;
    std::vector<OpIndex> points = highest(levels, double(ask.budget.count), parts);
    if (points.empty()) return best;
    for (std::size_t round = 0; round < kCutRounds && !points.empty(); ++round) {
      BoundProgram program(step, spans, ask, points);
      const LinearProgram::Outcome outcome = program.solve(work);
      if (outcome == LinearProgram::Outcome::Infeasible) {
        return Error{Error::Kind::BadArgument,
                     "no plan with these levers fits in " + std::to_string(ask.budget.count) + " bytes", ""};
      }
      best = std::max(best, program.proven());
      if (work == 0) return best;
      if (outcome != LinearProgram::Outcome::Solved) break;
      points = joined(points, worst(program.excess(), parts));
    }
    if (parts > kFewest && best.count <= before.count * kWorthMore) return best;
  }
  return best;
}

}  // namespace ullage::plan
