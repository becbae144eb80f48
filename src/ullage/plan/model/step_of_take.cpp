// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/step_of_take.h"

#include "ullage/plan/model/recomputes.h"
#include "ullage/plan/model/step_builder.h"
#include "ullage/plan/model/step_figures.h"
#include "ullage/plan/model/step_range.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::plan {
namespace {

Result<Step> made_of(const trace::TakeIndex& index, const trace::TakeMeaning& meaning, const StepRange& range,
                     const StandsOn& on) {
  ULLAGE_TRY_VALUE(BuiltStep built, build_step(index, meaning, range, on));
  add_recomputes(index, on.kernels, built);
  add_figures(index, range, on, built.step);
  return std::move(built.step);
}

void take_least_times(const trace::TakeIndex& index, const StepRange& from, Step& step) {
  for (const OpIndex k : step.ops.ids()) {
    Seconds& took = step.ops[k].took;
    took = std::min(took, index.detail(from.ops[k]).took);
  }
  step.seconds = std::min(step.seconds, length_of(index, from));
}

void fill_in_times(Step& step) {
  step.in_ops = {};
  for (StepOp& op : step.ops) {
    step.in_ops.count += op.took.count;
    if (op.recompute) op.recompute->took = op.took;
    if (op.batch_norm) op.batch_norm->took = {op.took.count * kBatchNormShare};
  }
  step.seconds = std::max(step.seconds, step.in_ops);
}

}  // namespace

Result<Step> step_of(const trace::Take& take, const trace::TakeMeaning& meaning, std::size_t which,
                     const StandsOn& on) {
  const trace::TakeIndex index(take);
  ULLAGE_TRY_VALUE(const StepRange range, step_range(index, meaning.steps, which));
  return made_of(index, meaning, range, on);
}

Result<Step> typical_step(const trace::Take& take, const trace::TakeMeaning& meaning, const StandsOn& on) {
  const trace::TakeIndex index(take);
  std::map<std::vector<std::uint64_t>, std::vector<StepRange>> alike;  // by keys
  Error last{Error::Kind::BadArgument, "the recording has no whole step after the first one; record more steps", ""};
  for (std::size_t which = 1; which < meaning.steps.whole(); ++which) {
    Result<StepRange> range = step_range(index, meaning.steps, which);
    if (!range) {
      last = range.error();
      continue;
    }
    std::vector<std::uint64_t> keys;
    for (const OpId op : range->ops) keys.push_back(key_of(index, op));
    alike[std::move(keys)].push_back(std::move(*range));
  }
  if (alike.empty()) return last;
  const auto rank = [](const auto& one) { return std::pair(one.second.size(), one.second.back().begin); };
  const auto most = std::ranges::max_element(alike, {}, rank);
  ULLAGE_TRY_VALUE(Step step, made_of(index, meaning, most->second.back(), on));
  for (const StepRange& one : most->second) take_least_times(index, one, step);
  fill_in_times(step);
  return step;
}

}  // namespace ullage::plan
