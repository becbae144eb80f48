// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/problem_builder.h"

#include "ullage/plan/problem/moved_storages.h"

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
  out_.dies = facts_.dies;
}

Problem ProblemBuilder::build() {
  number_values();
  build_recipes();
  wanted_until();
  build_positions();
  sum_costs();
  return std::move(out_);
}

void ProblemBuilder::number_value(ValueIndex v) {
  number_[v] = next_of(out_.values);
  const StepStorage& storage = storage_of(v);
  Problem::Moved moved{.value = v, .bytes = count(storage.bytes)};
  moved.pinned = !storage.movable;
  moved.from_before = storage.from_before && step_.values[v].maker == kNone;
  moved.idle = facts_.idle(step_.values[v].storage);
  out_.values.push_back(moved);
}

void ProblemBuilder::number_values() {
  number_.assign(step_.values.size(), kNone);
  for (const ValueIndex v : step_.values.ids())
    if (moved_[step_.values[v].storage] && step_.values[v].maker == kNone) number_value(v);
  for (const StepOp& op : step_.ops)
    for (const ValueIndex make : op.makes)
      if (moved_[step_.values[make].storage]) number_value(make);
}

// Adds the moved values among `reads` to the lists, the newest first, each once.
IdRange<ListIndex> ProblemBuilder::list(const std::vector<ValueIndex>& reads) {
  IdRange<ListIndex> range{.from = next_of(out_.lists)};
  for (const ValueIndex read : reads)
    if (number_[read] != kNone) out_.lists.push_back(number_[read]);
  const auto from = out_.lists.begin() + range.from.value;
  std::sort(from, out_.lists.end(), std::greater<>());
  out_.lists.erase(std::unique(from, out_.lists.end()), out_.lists.end());
  range.until = next_of(out_.lists);
  return range;
}

IdRange<MadeIndex> ProblemBuilder::made_by(const StepOp& op, std::size_t most) {
  IdRange<MadeIndex> range{.from = next_of(out_.made)};
  for (std::size_t i = 0; i < std::min(most, op.makes.size()); ++i) {
    if (number_[op.makes[i]] == kNone) continue;
    const MovedIndex over = i < op.overwrites ? number_[facts_.overwritten(op, i)] : kNone;
    out_.made.push_back({.value = number_[op.makes[i]], .over = over});
  }
  range.until = next_of(out_.made);
  return range;
}

// The last op before which all values of `reads` that are not moved still exist.
OpIndex ProblemBuilder::last_chance(const std::vector<ValueIndex>& reads) const {
  OpIndex until = step_.ops.next_id();
  for (const ValueIndex read : reads) {
    if (number_[read] != kNone) continue;
    const Value& value = step_.values[read];
    until = std::min(until, value.overwritten_by);
    const GapIndex dies = facts_.dies[value.storage];
    if (dies != kNone) until = std::min(until, dies == GapIndex{0} ? OpIndex{0} : op_before(dies));
  }
  return until;
}

RecipeIndex ProblemBuilder::add_recipe(OpIndex op, const Recompute& way, bool batch_norm) {
  const StepOp& it = step_.ops[op];
  Problem::Recipe recipe{.op = op, .batch_norm = batch_norm};
  recipe.seconds = way.took.count;
  recipe.rise = count(way.rise);
  recipe.until = last_chance(way.reads);
  recipe.reads = list(way.reads);
  recipe.makes = made_by(it, batch_norm ? 1 : it.makes.size());
  const RecipeIndex made = next_of(out_.recipes);
  out_.recipes.push_back(recipe);
  return made;
}

void ProblemBuilder::build_recipes() {
  for (const OpIndex op : step_.ops.ids()) {
    const StepOp& it = step_.ops[op];
    bool any = false;
    for (const ValueIndex make : it.makes) any = any || number_[make] != kNone;
    if (!any) continue;
    const RecipeIndex recompute_at = ways_.recompute(op) ? add_recipe(op, *it.recompute, false) : kNone;
    const RecipeIndex batch_norm_at = ways_.batch_norm(op) ? add_recipe(op, *it.batch_norm, true) : kNone;
    for (std::size_t i = 0; i < it.makes.size(); ++i) {
      const MovedIndex v = number_[it.makes[i]];
      if (v == kNone) continue;
      out_.values[v].recompute = recompute_at;
      if (i == 0) out_.values[v].batch_norm = batch_norm_at;
    }
  }
}

// Finds for each value the last op that could need it, itself or to recompute something from it.
void ProblemBuilder::wanted_until() {
  wanted_.assign(out_.values.size(), OpIndex{0});
  for (const MovedIndex i : out_.values.ids().backwards()) {
    const ValueIndex v = out_.values[i].value;
    OpIndex last = facts_.uses[v].empty() ? OpIndex{0} : facts_.uses[v].back();
    if (lives_on(v)) last = step_.ops.next_id();
    wanted_[i] = std::max(wanted_[i], last);
    for (const RecipeIndex way : {out_.values[i].recompute, out_.values[i].batch_norm}) {
      if (way == kNone) continue;
      for (const MovedIndex read : out_.lists[out_.recipes[way].reads])
        wanted_[read] = std::max(wanted_[read], wanted_[i]);
    }
  }
}

void ProblemBuilder::sum_costs() {
  double seconds = 0;
  for (const Problem::Moved& value : out_.values) {
    const double copies = static_cast<double>(value.bytes) * (out_.write_seconds + out_.read_seconds);
    const double recompute = value.recompute == kNone ? 0 : out_.recipes[value.recompute].seconds;
    seconds += std::max(levers_.spill || value.from_before ? copies : 0, recompute);
  }
  out_.dearest = std::max(1.0, seconds / std::max(1e-9, step_.in_ops.count));
}

Problem problem_of(const Step& step, const Levers& levers, const Rates& rates, Bytes hot) {
  return ProblemBuilder(step, levers, rates, hot).build();
}

}  // namespace ullage::plan
