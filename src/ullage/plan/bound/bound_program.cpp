// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/bound_program.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ullage::plan {
namespace {

constexpr double kInUse = 1e-7;  // a chain is in use if its column is above this
constexpr std::size_t kMostRounds = 200;

// For each op the values that must be present: those that it reads or overwrites. Arguments in StepOp::unread count
// only if the op overwrites them.
Table<OpIndex, std::vector<ValueIndex>> needs_of(const Step& step) {
  Table<OpIndex, std::vector<ValueIndex>> needs(step.ops.size());
  for (const OpIndex op : step.ops.ids()) {
    const StepOp& now = step.ops[op];
    for (std::size_t i = 0; i < now.reads.size(); ++i) {
      const bool unread = std::find(now.unread.begin(), now.unread.end(), std::uint32_t(i)) != now.unread.end();
      if (!unread || step.values[now.reads[i]].overwritten_by == op) needs[op].push_back(now.reads[i]);
    }
  }
  return needs;
}

Table<ValueIndex, OpIndex> last_reads(const Table<OpIndex, std::vector<ValueIndex>>& needs, std::size_t values) {
  Table<ValueIndex, OpIndex> last(values);
  for (const OpIndex op : needs.ids()) {
    for (const ValueIndex v : needs[op]) last[v] = op.next();
  }
  return last;
}

}  // namespace

BoundProgram::BoundProgram(const Step& step, const Spans& spans, const Ask& ask, const std::vector<OpIndex>& points)
    : step_(step),
      spans_(spans),
      ask_(ask),
      times_{OpIndex{0}},
      needs_(needs_of(step)),
      last_read_(last_reads(needs_, step.values.size())) {
  for (const OpIndex point : points) times_.push_back(point);
  unit_ = std::max(1.0, double(ask.budget.count)) / 1000;
  second_ = step.in_ops.count > 0 ? step.in_ops.count / 1000 : 1;
  tiny_ = saturating_sub(step.peak, ask.budget) / 200'000;
  present_.assign(times_.size(), Table<ValueIndex, ColumnIndex>(step.values.size(), kUnset));
  const Columns<OpIndex> by_op(times_.size(), Table<OpIndex, ColumnIndex>(step.ops.size(), kUnset));
  in_window_ = from_point_on_ = Ways{by_op, by_op, present_};
  written_.assign(step.values.size(), kUnset);
  memory_rows_.assign(times_.size(), kNone);
  fixed_ = fixed_levels();
  for (const PointIndex point : IdRange<PointIndex>{PointIndex{1}, times_.next_id()}) add_memory(point);
  for (const PointIndex window : times_.ids()) add_needs(window);
  for (const PointIndex point : times_.ids()) add_needs_from(point);
  add_borders();
}

OpIndex BoundProgram::window_end(PointIndex window) const {
  return times_.has(window.next()) ? times_[window.next()] : step_.ops.next_id();
}

Bytes BoundProgram::bytes_of(ValueIndex v) const { return step_.storages[step_.values[v].storage].bytes; }

bool BoundProgram::exists(ValueIndex v, PointIndex point) const { return spans_.values[v].from <= time(point); }

// Is it lost for good at this point? It is if no op makes it, and the program overwrote it, or freed its storage and
// nothing may be held.
bool BoundProgram::gone(ValueIndex v, PointIndex point) const {
  const Value& value = step_.values[v];
  if (value.maker != kNone || spans_.values[v].holds(time(point))) return false;
  return value.overwritten_by != kNone || !ask_.levers.hold;
}

// Is there a lever that may spill it? A storage may cross one border of steps, as a gradient that is made in one step
// and freed in the next. Then `spill` or `state` suffices.
bool BoundProgram::restorable(ValueIndex v) const {
  const StepStorage& storage = step_.storages[step_.values[v].storage];
  if (!storage.movable) return false;
  if (lives_from_step_to_step(storage)) return ask_.levers.state;
  return ask_.levers.spill || ((storage.from_before || storage.outlives) && ask_.levers.state);
}

// Does the program overwrite it in that window, or free its storage while nothing may be held? Then it can be present
// at the window's end only by a recompute.
bool BoundProgram::lost_in(ValueIndex v, PointIndex window) const {
  const Value& value = step_.values[v];
  const OpIndex from = time(window), until = window_end(window);
  if (value.overwritten_by < until) return value.overwritten_by >= from;
  const OpIndex death = spans_.storages[value.storage].until;
  return !ask_.levers.hold && from < death && death <= until;
}

// Every schedule has the value present from its birth until this op.
OpIndex BoundProgram::stuck_until(ValueIndex v) const {
  const Value& value = step_.values[v];
  const Span span = spans_.values[v];
  if (!step_.storages[value.storage].movable) return span.until;
  if (restorable(v) || can_recompute(v, false) || can_recompute(v, true)) return span.from;
  return std::max(span.from, span.until);
}

bool BoundProgram::can_recompute(ValueIndex v, bool batch_norm) const {
  const OpIndex maker = step_.values[v].maker;
  if (maker == kNone || !(batch_norm ? ask_.levers.batch_norm : ask_.levers.recompute)) return false;
  const StepOp& op = step_.ops[maker];
  return batch_norm ? op.batch_norm && op.makes.front() == v : bool(op.recompute);
}

bool BoundProgram::stuck(ValueIndex v, PointIndex point) const {
  return exists(v, point) && time(point) < stuck_until(v);
}

LinearProgram::Outcome BoundProgram::solve(std::uint64_t& work) {
  for (std::size_t round = 0;; ++round) {
    const std::uint64_t before = program_.pivots(), columns = std::max<std::uint64_t>(1, program_.columns());
    const std::uint64_t most = std::min<std::uint64_t>(work / columns, std::numeric_limits<int>::max());
    if (most == 0) return work = 0, LinearProgram::Outcome::GivenUp;
    const LinearProgram::Outcome outcome = program_.solve(static_cast<int>(most));
    work -= std::min(work, (program_.pivots() - before) * columns);
    if (outcome != LinearProgram::Outcome::Solved || round == kMostRounds) return outcome;
    std::vector<Chain> used, unused;
    for (const Chain& chain : waiting_) (program_.value(chain.column) > kInUse ? used : unused).push_back(chain);
    if (used.empty()) return outcome;
    waiting_ = std::move(unused);
    for (const Chain& chain : used) add_chain(chain);
  }
}

Seconds BoundProgram::proven() const { return {std::max(0.0, program_.proven() * (1 - 1e-9)) * second_}; }

double BoundProgram::part_of(ValueIndex v, PointIndex point) const {
  const ColumnIndex column = present_[point][v];
  if (is_column(column)) return program_.value(column);
  return column == kAlways && !stuck(v, point) ? 1 : 0;  // what is stuck is counted in `fixed_`
}

// The part of v that is present throughout the window, as far as its two ends show.
double BoundProgram::part_in(ValueIndex v, PointIndex window) const {
  const double part = times_.has(window.next()) ? part_of(v, window.next()) : 0;
  return exists(v, window) ? std::min(part, part_of(v, window)) : part;
}

Table<OpIndex, double> BoundProgram::excess() const {
  Table<OpIndex, double> over(step_.ops.size() + 1, 0);
  const auto add = [&](OpIndex from, OpIndex until, double bytes) {
    if (from >= until) return;
    over[from] += bytes;
    over[until] -= bytes;
  };
  for (const ValueIndex v : step_.values.ids()) {
    const double bytes = double(bytes_of(v).count);
    for (const PointIndex w : times_.ids()) {
      const OpIndex from = std::max(time(w), spans_.values[v].from), until = window_end(w);
      if (from >= until) continue;
      const double part = part_in(v, w);
      add(from, until, bytes * part);
      if (!exists(v, w)) add(from, std::min(last_read_[v], until), bytes * (1 - part));
    }
  }
  double sum = 0;
  PointIndex w;
  for (const OpIndex op : step_.ops.ids()) {
    while (times_.has(w.next()) && time(w.next()) <= op) w = w.next();
    sum += over[op];
    over[op] = sum + fixed_[op] + rise_of(step_.ops[op]) - double(ask_.budget.count);
    for (const ValueIndex v : needs_[op]) {
      if (!exists(v, w) || present_[w][v] == kAlways) continue;
      over[op] += double(bytes_of(v).count) * (1 - part_in(v, w));
    }
  }
  over.pop_back();
  return over;
}

}  // namespace ullage::plan
