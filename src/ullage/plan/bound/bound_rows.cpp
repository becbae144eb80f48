// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/bound_program.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ullage::plan {

void BoundProgram::require(ValueIndex v, PointIndex at, When when, bool carry, ColumnIndex user, double least,
                           ColumnIndex instead) {
  std::vector<LinearProgram::Entry> entries;
  const auto add = [&](ColumnIndex column) {
    if (is_column(column)) entries.push_back({column, 1});
  };
  if (carry) {
    const ColumnIndex here = present(v, at);
    if (here == kAlways) return;
    add(here);
    add(restored(v, at, when));
  } else if (bytes_of(v) <= tiny_ && step_.values[v].maker != kNone) {
    return;
  }
  add(recomputed(v, at, false, when));
  add(recomputed(v, at, true, when));
  add(instead);
  if (is_column(user)) entries.push_back({user, -1});
  program_.add_row(std::move(entries), least);
}

void BoundProgram::add_stay(ValueIndex v, PointIndex point) {
  const PointIndex window = point.previous();
  const bool carry = !lost_in(v, window);
  if (!exists(v, window) && carry) return;  // the program itself makes the value in this window, so nothing is required
  require(v, window, When::InWindow, carry, present_[point][v], 0);
}

void BoundProgram::add_chain(const Chain& chain) {
  const StepOp& op = step_.ops[chain.op];
  for (const ValueIndex read : (chain.batch_norm ? op.batch_norm : op.recompute)->reads) {
    // If an op in place is recomputed after the program ran it, what it overwrites is gone and must be recomputed too.
    const bool overwrites = step_.values[read].overwritten_by == chain.op;
    const bool carry = !(overwrites && !chain.batch_norm && chain.op >= time(chain.at));
    if (!exists(read, chain.at) && carry) continue;
    require(read, chain.at, chain.when, carry, chain.column, 0);
  }
}

// For each op: the bytes that no schedule can move when it begins, and those of live storages that the step does not
// list.
Table<OpIndex, double> BoundProgram::fixed_levels() const {
  Table<OpIndex, double> change(step_.ops.size() + 2, 0);
  change.front() = double(step_.level.count);
  const auto add = [&](Span span, Bytes bytes) {
    if (span.from >= span.until) return;
    change[span.from] += double(bytes.count);
    change[span.until] -= double(bytes.count);
  };
  for (const StorageIndex s : step_.storages.ids()) {
    const StepStorage& storage = step_.storages[s];
    if (storage.from_before) change.front() -= double(storage.bytes.count);
    if (!storage.movable || !spans_.known[s]) add(spans_.storages[s], storage.bytes);
  }
  for (const ValueIndex v : step_.values.ids()) {
    if (!step_.storages[step_.values[v].storage].movable) continue;
    add({spans_.values[v].from, stuck_until(v)}, bytes_of(v));
  }
  double level = 0;
  for (double& it : change) it = level += it;
  return change;
}

void BoundProgram::add_memory(PointIndex point) {
  const StepOp& op = step_.ops[time(point)];
  memory_rows_[point] = program_.add_row({}, (fixed_[time(point)] + rise_of(op) - double(ask_.budget.count)) / unit_);
}

// The most bytes that the op adds to the level: while it runs, or when it has ended.
double BoundProgram::rise_of(const StepOp& op) const {
  Bytes made;
  for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) made += bytes_of(op.makes[i]);
  for (const StorageIndex s : op.hides) made += step_.storages[s].bytes;
  return double(std::max(made, op.rise).count);
}

void BoundProgram::add_needs(PointIndex window) {
  Table<ValueIndex, bool> done(step_.values.size(), false);
  for (const OpIndex op : IdRange<OpIndex>{time(window), window_end(window)}) {
    for (const ValueIndex v : needs_[op]) {
      if (done[v] || !exists(v, window)) continue;
      done[v] = true;
      require(v, window, When::InWindow, true, kUnset, 1);
    }
  }
}

void BoundProgram::add_needs_from(PointIndex point) {
  for (const ValueIndex v : step_.values.ids()) {
    if (!exists(v, point)) continue;
    if (last_read_[v] > time(point)) {
      require(v, point, When::FromPointOn, true, kUnset, 1);
    } else if (spans_.values[v].holds(time(point))) {
      // A value that is in the spill file need not be in memory.
      const ColumnIndex out = restorable(v) ? in_spill_file(v) : kNever;
      require(v, point, When::FromPointOn, true, kUnset, 1, out);
      if (spans_.values[v].until <= window_end(point)) require(v, point, When::InWindow, true, kUnset, 1, out);
    }
  }
}

void BoundProgram::add_borders() {
  const PointIndex end = times_.next_id().previous();
  for (const StorageIndex s : step_.storages.ids()) {
    if (!step_.storages[s].outlives || !spans_.known[s] || !exists(spans_.last[s], end)) continue;
    const ValueIndex last = spans_.last[s];
    const StorageIndex next = step_.in_next_step(s);
    const ColumnIndex begins =
        next != kNone && spans_.known[next] ? present(spans_.first[next], PointIndex{0}) : kAlways;
    if (is_column(begins)) require(last, end, When::InWindow, true, begins, 0);
    if (begins == kAlways) require(last, end, When::InWindow, true, kUnset, 1);
  }
}

}  // namespace ullage::plan
