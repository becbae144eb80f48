// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem_builder.h"

#include "ullage/plan/moved_storages.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace ullage::plan {

ProblemBuilder::ProblemBuilder(const Step& step, const Levers& levers, const Rates& rates, Bytes hot)
    : step_(step),
      levers_(levers),
      facts_(step),
      ways_{step_, facts_, levers_},
      hot_(facts_, count(hot)),
      moved_(moved_storages(ways_, hot_)) {
  out_.step = &step;
  out_.levers = levers;
  out_.write_seconds = 1 / rates.write;
  out_.read_seconds = 1 / rates.read;
  out_.each_seconds = rates.each.count;
  out_.dies.assign(facts_.dies.begin(), facts_.dies.end());
}

Problem ProblemBuilder::build() {
  number_values();
  build_recipes();
  wanted_until();
  build_positions();
  sum_costs();
  return std::move(out_);
}

void ProblemBuilder::number_value(std::size_t v) {
  number_[v] = narrow(out_.values.size());
  const StepStorage& storage = storage_of(v);
  Problem::Moved moved{.value = ValueIndex{v}, .bytes = count(storage.bytes)};
  moved.pinned = !storage.movable;
  moved.from_before = storage.from_before && step_.values[v].maker == kNone;
  out_.values.push_back(moved);
}

void ProblemBuilder::number_values() {
  number_.assign(step_.values.size(), -1);
  for (std::size_t v = 0; v < step_.values.size(); ++v)
    if (moved_[step_.values[v].storage.value] && step_.values[v].maker == kNone) number_value(v);
  for (const StepOp& op : step_.ops)
    for (const ValueIndex make : op.makes)
      if (moved_[step_.values[make.value].storage.value]) number_value(make.value);
}

// The moved ones among `reads`, the newest first, each once.
Range ProblemBuilder::list(const std::vector<ValueIndex>& reads) {
  Range range{narrow(out_.lists.size()), 0};
  for (const ValueIndex read : reads)
    if (number_[read.value] >= 0) out_.lists.push_back(number_[read.value]);
  const auto from = out_.lists.begin() + range.begin;
  std::sort(from, out_.lists.end(), std::greater<>());
  out_.lists.erase(std::unique(from, out_.lists.end()), out_.lists.end());
  range.end = narrow(out_.lists.size());
  return range;
}

Range ProblemBuilder::made_by(const StepOp& op, std::size_t most) {
  Range range{narrow(out_.made.size()), 0};
  for (std::size_t i = 0; i < std::min(most, op.makes.size()); ++i) {
    if (number_[op.makes[i].value] < 0) continue;
    const std::int32_t over = i < op.overwrites ? number_[facts_.overwritten(op, i)] : -1;
    out_.made.push_back({.value = number_[op.makes[i].value], .over = over});
  }
  range.end = narrow(out_.made.size());
  return range;
}

// The last op before which everything that is read, and not moved, is still there.
std::int32_t ProblemBuilder::last_chance(const std::vector<ValueIndex>& reads) const {
  std::size_t until = step_.ops.size();
  for (const ValueIndex read : reads) {
    if (number_[read.value] >= 0) continue;
    const Value& value = step_.values[read.value];
    if (value.overwritten_by != kNone) until = std::min<std::size_t>(until, value.overwritten_by.value);
    const std::uint64_t dies = facts_.dies[value.storage.value];
    if (dies <= step_.ops.size()) until = std::min<std::size_t>(until, dies == 0 ? 0 : dies - 1);
  }
  return narrow(until);
}

std::int32_t ProblemBuilder::add_recipe(std::size_t op, const Remaking& way, bool apply) {
  const StepOp& it = step_.ops[op];
  Problem::Recipe recipe{.op = OpIndex{op}, .apply = apply};
  recipe.seconds = way.took.count;
  recipe.rise = count(way.rise);
  recipe.until = last_chance(way.reads);
  recipe.reads = list(way.reads);
  recipe.makes = made_by(it, apply ? 1 : it.makes.size());
  out_.recipes.push_back(recipe);
  return narrow(out_.recipes.size()) - 1;
}

void ProblemBuilder::build_recipes() {
  for (std::size_t op = 0; op < step_.ops.size(); ++op) {
    const StepOp& it = step_.ops[op];
    bool any = false;
    for (const ValueIndex make : it.makes) any = any || number_[make.value] >= 0;
    if (!any) continue;
    const std::int32_t rerun_at = ways_.rerun(op) ? add_recipe(op, *it.rerun, false) : -1;
    const std::int32_t apply_at = ways_.apply(op) ? add_recipe(op, *it.apply, true) : -1;
    for (std::size_t i = 0; i < it.makes.size(); ++i) {
      const std::int32_t v = number_[it.makes[i].value];
      if (v < 0) continue;
      out_.values[static_cast<std::size_t>(v)].rerun = rerun_at;
      if (i == 0) out_.values[static_cast<std::size_t>(v)].apply = apply_at;
    }
  }
}

// The last op that could want each value: by itself, or for what is made from it.
void ProblemBuilder::wanted_until() {
  wanted_.assign(out_.values.size(), 0);
  for (std::size_t i = out_.values.size(); i-- > 0;) {
    const std::size_t v = out_.values[i].value.value;
    std::size_t last = facts_.uses[v].empty() ? 0 : facts_.uses[v].back();
    if (lives_on(v)) last = step_.ops.size();
    wanted_[i] = std::max(wanted_[i], last);
    for (const std::int32_t way : {out_.values[i].rerun, out_.values[i].apply}) {
      if (way < 0) continue;
      const Range reads = out_.recipes[static_cast<std::size_t>(way)].reads;
      for (std::int32_t r = reads.begin; r < reads.end; ++r) {
        std::size_t& wanted = wanted_[static_cast<std::size_t>(out_.lists[static_cast<std::size_t>(r)])];
        wanted = std::max(wanted, wanted_[i]);
      }
    }
  }
}

void ProblemBuilder::sum_costs() {
  double seconds = 0;
  for (const Problem::Moved& value : out_.values) {
    const double copies = static_cast<double>(value.bytes) * (out_.write_seconds + out_.read_seconds);
    const double rerun = value.rerun < 0 ? 0 : out_.recipes[static_cast<std::size_t>(value.rerun)].seconds;
    seconds += std::max(levers_.spill || value.from_before ? copies : 0, rerun);
  }
  out_.dearest = std::max(1.0, seconds / std::max(1e-9, step_.in_ops.count));
}

Problem problem_of(const Step& step, const Levers& levers, const Rates& rates, Bytes hot) {
  return ProblemBuilder(step, levers, rates, hot).build();
}

}  // namespace ullage::plan
