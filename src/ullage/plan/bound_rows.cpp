// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound_program.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ullage::plan {

void BoundProgram::require(ValueIndex v, std::size_t at, When when, bool carry, int user, double least, int instead) {
  std::vector<LinearProgram::Entry> entries;
  const auto add = [&](int column) {
    if (column >= 0) entries.push_back({column, 1});
  };
  if (carry) {
    const int here = present(v, at);
    if (here == kAlways) return;
    add(here);
    add(restored(v, at, when));
  } else if (bytes_of(v) <= tiny_ && step_.values[v.value].maker != kNone) {
    return;
  }
  add(remade(v, at, false, when));
  add(remade(v, at, true, when));
  add(instead);
  if (user >= 0) entries.push_back({user, -1});
  program_.add_row(std::move(entries), least);
}

void BoundProgram::add_stay(ValueIndex v, std::size_t point) {
  const std::size_t window = point - 1;
  const bool carry = !lost_in(v, window);
  if (!exists(v, window) && carry) return;  // made in it
  require(v, window, When::InWindow, carry, present_[point][v.value], 0);
}

void BoundProgram::add_chain(const Chain& chain) {
  const StepOp& op = step_.ops[chain.op];
  for (const ValueIndex read : (chain.apply ? op.apply : op.rerun)->reads) {
    // In place, and not before the program's own run of it: what it overwrites is not what the program had.
    const bool overwrites = step_.values[read.value].overwritten_by == OpIndex{chain.op};
    const bool carry = !(overwrites && !chain.apply && chain.op >= time(chain.at));
    if (!exists(read, chain.at) && carry) continue;
    require(read, chain.at, chain.when, carry, chain.column, 0);
  }
}

// By op: what is there when it begins and cannot be elsewhere, and the bytes of the pool that are nobody's.
std::vector<double> BoundProgram::fixed_levels() const {
  std::vector<double> change(step_.ops.size() + 2, 0);
  change[0] = double(step_.level.count);
  const auto add = [&](Span span, Bytes bytes) {
    if (span.from >= span.until) return;
    change[span.from] += double(bytes.count);
    change[span.until] -= double(bytes.count);
  };
  for (std::size_t s = 0; s < step_.storages.size(); ++s) {
    const StepStorage& storage = step_.storages[s];
    if (storage.from_before) change[0] -= double(storage.bytes.count);
    if (!storage.movable || !spans_.known[s]) add(spans_.storages[s], storage.bytes);
  }
  for (std::size_t v = 0; v < step_.values.size(); ++v) {
    if (!step_.storages[step_.values[v].storage.value].movable) continue;
    add({spans_.values[v].from, stuck_until(ValueIndex{v})}, bytes_of(ValueIndex{v}));
  }
  for (std::size_t op = 1; op < change.size(); ++op) change[op] += change[op - 1];
  return change;
}

void BoundProgram::add_memory(std::size_t point) {
  const StepOp& op = step_.ops[time(point)];
  memory_rows_[point] = program_.add_row({}, (fixed_[time(point)] + rise_of(op) - double(ask_.budget.count)) / unit_);
}

// While it runs, or as soon as it has.
double BoundProgram::rise_of(const StepOp& op) const {
  Bytes made;
  for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) made += bytes_of(op.makes[i]);
  for (const StorageIndex s : op.hides) made += step_.storages[s.value].bytes;
  return double(std::max(made, op.rise).count);
}

void BoundProgram::add_needs(std::size_t window) {
  std::vector<bool> done(step_.values.size(), false);
  for (std::size_t op = time(window); op < window_end(window); ++op) {
    for (const ValueIndex v : needs_[op]) {
      if (done[v.value] || !exists(v, window)) continue;
      done[v.value] = true;
      require(v, window, When::InWindow, true, -1, 1);
    }
  }
}

void BoundProgram::add_needs_from(std::size_t point) {
  for (std::size_t i = 0; i < step_.values.size(); ++i) {
    const ValueIndex v{i};
    if (!exists(v, point)) continue;
    if (last_read_[i] > time(point)) {
      require(v, point, When::FromPointOn, true, -1, 1);
    } else if (spans_.values[i].holds(time(point))) {
      const int out = restorable(v) ? written(v) : kNever;  // and need not come back
      require(v, point, When::FromPointOn, true, -1, 1, out);
      if (spans_.values[i].until <= window_end(point)) require(v, point, When::InWindow, true, -1, 1, out);
    }
  }
}

void BoundProgram::add_borders() {
  const std::size_t end = times_.size() - 1;
  for (std::size_t s = 0; s < step_.storages.size(); ++s) {
    if (!step_.storages[s].outlives || !spans_.known[s] || !exists(spans_.last[s], end)) continue;
    const ValueIndex last = spans_.last[s];
    const int begins = lives_from_step_to_step(step_.storages[s]) ? present(spans_.first[s], 0) : kAlways;
    if (begins >= 0) require(last, end, When::InWindow, true, begins, 0);
    if (begins == kAlways) require(last, end, When::InWindow, true, -1, 1);
  }
}

}  // namespace ullage::plan
