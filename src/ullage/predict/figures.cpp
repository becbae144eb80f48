// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/figures.h"

#include "ullage/predict/lift.h"
#include "ullage/predict/event_text.h"
#include "ullage/sim/pool.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/take/take_meaning.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ullage::predict {
namespace {

// One row for each category that has bytes, largest first.
std::vector<Row> category_rows(const std::vector<trace::Owner>& owners) {
  std::array<Bytes, trace::kCategories> sums{};
  for (const trace::Owner& owner : owners) sums[std::size_t(owner.category)] += owner.bytes;
  std::vector<Row> rows;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] > Bytes{}) rows.push_back({std::string(trace::name(trace::Category(i))), sums[i], ""});
  }
  std::ranges::stable_sort(rows, std::greater<>(), &Row::bytes);
  return rows;
}

void tell_peak(Prediction& prediction, const trace::TakeMeaning& meaning, EventId peak) {
  const trace::Take& take = prediction.take;
  if (peak >= take.trace.end()) return;
  if (const OpId op = op_at(take, peak); op != trace::kNoOp) {
    prediction.peak_op = take.trace.ops[op.value].name;
    prediction.peak_layer = take.details[op.value].layer;
  }
  prediction.peak_phase = phase_around(take, peak);
  if (!prediction.peak_phase.empty()) return;
  if (peak.value < meaning.phases.size()) prediction.peak_phase = trace::name(meaning.phases[peak.value]);
  const auto begun = std::ranges::upper_bound(meaning.steps.begins, peak);
  prediction.peak_step = std::uint64_t(begun - meaning.steps.begins.begin());
}

// Simulates the pool without and with the slack and takes the larger peak: with more storages the pages may happen
// to be used better.
Bytes pool_resident(const trace::Take& take, std::span<const Slack> slack) {
  const sim::PoolPeaks plain = sim::run_pool(take.trace);
  const Bytes least = std::max(plain.resident, plain.live);
  if (slack.empty()) return least;
  const sim::PoolPeaks with = sim::run_pool(with_slack(take, slack));
  return std::max({least, with.resident, with.live});
}

void add_rows(Prediction& prediction, const Outside& outside) {
  prediction.rows = category_rows(prediction.owners);
  const auto add = [&](const char* name, Bytes bytes, const char* source) {
    if (bytes > Bytes{}) prediction.rows.push_back({name, bytes, source});
  };
  add("pages of the pool beyond tensors", prediction.pool_resident_peak - prediction.pool_peak, "");
  add("program and libraries", outside.program, "measured at the sizes tried, 3 MiB more for chance");
  add("charged by the program", outside.charged, "");
  for (const Row& row : prediction.rows) prediction.process_peak += row.bytes;
}

}  // namespace

Figures figures(trace::Take take, const Outside& outside, std::span<const Slack> slack, Bytes unseen) {
  Figures found;
  Prediction& prediction = found.prediction;
  prediction.take = std::move(take);
  const trace::TakeMeaning meaning = trace::understand(prediction.take);
  const trace::Trace& trace = prediction.take.trace;
  trace::Levels levels = trace::levels(trace);
  trace::Moment peak = *trace::find(trace, levels, trace::At::Peak);
  const std::optional<Lift> lift = highest(prediction.take, levels.live, slack);
  found.lifted = lift && lift->live + lift->bytes > peak.live;
  if (found.lifted) prediction.slack = lift->live + lift->bytes - peak.live;
  if (found.lifted) peak = {lift->at, lift->live, lift->live};
  prediction.peak = peak.event.value_or(trace.end());
  found.steps = meaning.steps;
  prediction.at = prediction.take.knobs;
  prediction.owners = trace::owners_at(trace, peak, meaning.meanings, meaning.categories);
  prediction.pool_peak = peak.live;
  const auto add = [&](const std::string& name, trace::Category category, Bytes bytes) {
    prediction.owners.push_back({name, category, bytes, 1, trace::StackId{}});
    prediction.pool_peak += bytes;
  };
  if (found.lifted) {
    add("scratch that " + trace.ops[lift->op.value].name + " may take", trace::Category::Workspace, lift->bytes);
  }
  if (unseen > Bytes{}) add("not recorded", trace::Category::Unattributed, unseen);
  std::ranges::stable_sort(prediction.owners, std::greater<>(), &trace::Owner::bytes);
  prediction.pool_resident_peak = std::max(pool_resident(prediction.take, slack) + unseen, prediction.pool_peak);
  tell_peak(prediction, meaning, prediction.peak);
  if (found.lifted) prediction.peak_op = trace.ops[lift->op.value].name;
  add_rows(prediction, outside);
  trace::ProcessFigures& process = prediction.take.process;
  process.peak = prediction.process_peak;
  process.outside_peak = outside.program + outside.charged;
  process.pool_live_peak = prediction.pool_peak;
  process.pool_resident_peak = prediction.pool_resident_peak;
  found.live = std::move(levels.live);
  return found;
}

Bytes process_peak(const trace::Take& take, const Outside& outside, std::span<const Slack> slack) {
  return pool_resident(take, slack) + outside.program + outside.charged;
}

}  // namespace ullage::predict
