// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound_program.h"

#include <algorithm>
#include <utility>

namespace ullage::plan {
namespace {

constexpr double kInUse = 1e-7;     // of a column that lies between 0 and 1
constexpr int kPivots = 2'000'000;  // so that it ends
constexpr std::size_t kMostRounds = 200;

// Those that must be there, by op: what is never looked at need not, unless the op writes on it.
std::vector<std::vector<ValueIndex>> needs_of(const Step& step) {
  std::vector<std::vector<ValueIndex>> needs(step.ops.size());
  for (std::size_t op = 0; op < step.ops.size(); ++op) {
    const StepOp& now = step.ops[op];
    for (std::size_t i = 0; i < now.reads.size(); ++i) {
      const bool unread = std::find(now.unread.begin(), now.unread.end(), std::uint32_t(i)) != now.unread.end();
      if (!unread || step.values[now.reads[i].value].overwritten_by == OpIndex{op}) needs[op].push_back(now.reads[i]);
    }
  }
  return needs;
}

std::vector<std::size_t> last_reads(const std::vector<std::vector<ValueIndex>>& needs, std::size_t values) {
  std::vector<std::size_t> last(values, 0);
  for (std::size_t op = 0; op < needs.size(); ++op) {
    for (const ValueIndex v : needs[op]) last[v.value] = op + 1;
  }
  return last;
}

}  // namespace

BoundProgram::BoundProgram(const Step& step, const Spans& spans, const Ask& ask, std::vector<std::size_t> points)
    : step_(step),
      spans_(spans),
      ask_(ask),
      times_(std::move(points)),
      needs_(needs_of(step)),
      last_read_(last_reads(needs_, step.values.size())) {
  times_.insert(times_.begin(), 0);
  unit_ = std::max(1.0, double(ask.budget.count)) / 1000;
  second_ = step.in_ops.count > 0 ? step.in_ops.count / 1000 : 1;
  tiny_ = saturating_sub(step.peak, ask.budget) / 200'000;
  present_.assign(times_.size(), std::vector<int>(step.values.size(), kUnset));
  const Table by_op(times_.size(), std::vector<int>(step.ops.size(), kUnset));
  in_window_ = from_point_on_ = Ways{by_op, by_op, present_};
  written_.assign(step.values.size(), kUnset);
  memory_rows_.assign(times_.size(), -1);
  fixed_ = fixed_levels();
  for (std::size_t point = 1; point < times_.size(); ++point) add_memory(point);
  for (std::size_t window = 0; window < times_.size(); ++window) add_needs(window);
  for (std::size_t point = 0; point < times_.size(); ++point) add_needs_from(point);
  add_borders();
}

std::size_t BoundProgram::window_end(std::size_t window) const {
  return window + 1 < times_.size() ? times_[window + 1] : step_.ops.size();
}

Bytes BoundProgram::bytes_of(ValueIndex v) const { return step_.storages[step_.values[v.value].storage.value].bytes; }

bool BoundProgram::exists(ValueIndex v, std::size_t point) const { return spans_.values[v.value].from <= time(point); }

// It cannot come again, whatever is done: no op makes it, and the program wrote over it or let go of it.
bool BoundProgram::gone(ValueIndex v, std::size_t point) const {
  const Value& value = step_.values[v.value];
  if (value.maker != kNone || spans_.values[v.value].holds(time(point))) return false;
  return value.overwritten_by != kNone || !ask_.levers.hold;
}

// Where a storage is of both kinds (a gradient: made in one step, freed in the next) either lever will do here.
bool BoundProgram::restorable(ValueIndex v) const {
  const StepStorage& storage = step_.storages[step_.values[v.value].storage.value];
  if (!storage.movable) return false;
  if (lives_from_step_to_step(storage)) return ask_.levers.state;
  return ask_.levers.spill || ((storage.from_before || storage.outlives) && ask_.levers.state);
}

// In that window the program writes over it, or frees its storage and nothing may hold it: whoever has it at the
// window's end, or needs it behind that op, has it from a rerun.
bool BoundProgram::lost_in(ValueIndex v, std::size_t window) const {
  const Value& value = step_.values[v.value];
  const std::size_t from = time(window), until = window_end(window);
  if (value.overwritten_by != kNone && value.overwritten_by.value < until) return value.overwritten_by.value >= from;
  const std::size_t death = spans_.storages[value.storage.value].until;
  return !ask_.levers.hold && from < death && death <= until;
}

// Behind its birth it is there up to this op, whatever is done.
std::size_t BoundProgram::stuck_until(ValueIndex v) const {
  const Value& value = step_.values[v.value];
  const Span span = spans_.values[v.value];
  if (!step_.storages[value.storage.value].movable) return span.until;
  if (restorable(v) || can_remake(v, false) || can_remake(v, true)) return span.from;
  return std::max(span.from, span.until);
}

bool BoundProgram::can_remake(ValueIndex v, bool apply) const {
  const OpIndex maker = step_.values[v.value].maker;
  if (maker == kNone || !(apply ? ask_.levers.batch_norm : ask_.levers.recompute)) return false;
  const StepOp& op = step_.ops[maker.value];
  return apply ? op.apply && op.makes.front() == v : bool(op.rerun);
}

bool BoundProgram::stuck(ValueIndex v, std::size_t point) const {
  return exists(v, point) && time(point) < stuck_until(v);
}

LinearProgram::Outcome BoundProgram::solve() {
  for (std::size_t round = 0;; ++round) {
    const LinearProgram::Outcome outcome = program_.solve(kPivots);
    if (outcome != LinearProgram::Outcome::Solved || round == kMostRounds) return outcome;
    std::vector<Chain> used, unused;
    for (const Chain& chain : waiting_) (program_.value(chain.column) > kInUse ? used : unused).push_back(chain);
    if (used.empty()) return outcome;
    waiting_ = std::move(unused);
    for (const Chain& chain : used) add_chain(chain);
  }
}

Seconds BoundProgram::proven() const { return {std::max(0.0, program_.proven() * (1 - 1e-9)) * second_}; }

double BoundProgram::part_of(ValueIndex v, std::size_t point) const {
  const int column = present_[point][v.value];
  if (column >= 0) return program_.value(column);
  return column == kAlways && !stuck(v, point) ? 1 : 0;  // what is stuck is in the level of what is fixed
}

// All through the window, as far as its ends tell.
double BoundProgram::part_in(ValueIndex v, std::size_t window) const {
  const double part = window + 1 < times_.size() ? part_of(v, window + 1) : 0;
  return exists(v, window) ? std::min(part, part_of(v, window)) : part;
}

std::vector<double> BoundProgram::excess() const {
  std::vector<double> over(step_.ops.size() + 1, 0);
  const auto add = [&](std::size_t from, std::size_t until, double bytes) {
    if (from >= until) return;
    over[from] += bytes;
    over[until] -= bytes;
  };
  for (std::size_t v = 0; v < step_.values.size(); ++v) {
    const double bytes = double(bytes_of(ValueIndex{v}).count);
    for (std::size_t w = 0; w < times_.size(); ++w) {
      const std::size_t from = std::max(time(w), spans_.values[v].from), until = window_end(w);
      if (from >= until) continue;
      const double part = part_in(ValueIndex{v}, w);
      add(from, until, bytes * part);
      if (!exists(ValueIndex{v}, w)) add(from, std::min(last_read_[v], until), bytes * (1 - part));
    }
  }
  double sum = 0;
  std::size_t w = 0;
  for (std::size_t op = 0; op < step_.ops.size(); ++op) {
    while (w + 1 < times_.size() && time(w + 1) <= op) ++w;
    sum += over[op];
    over[op] = sum + fixed_[op] + rise_of(step_.ops[op]) - double(ask_.budget.count);
    for (const ValueIndex v : needs_[op]) {
      if (!exists(v, w) || present_[w][v.value] == kAlways) continue;
      over[op] += double(bytes_of(v).count) * (1 - part_in(v, w));
    }
  }
  over.pop_back();
  return over;
}

}  // namespace ullage::plan
