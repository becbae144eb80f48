// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/bound_program.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::plan {

ColumnIndex BoundProgram::present(ValueIndex v, PointIndex point) {
  ColumnIndex& slot = present_[point][v];
  if (slot != kUnset) return slot;
  if (gone(v, point)) return slot = kNever;
  if (stuck(v, point) || bytes_of(v) <= tiny_) return slot = kAlways;
  if (point == PointIndex{0}) return slot = present_at_begin(v);
  const std::vector<ValueIndex>& needs = needs_[time(point)];
  const bool needed_here = std::find(needs.begin(), needs.end(), v) != needs.end();
  const ColumnIndex column = program_.add_column(0, needed_here ? 1 : 0, 1);
  slot = column;
  program_.extend_row(memory_rows_[point], {column, -double(bytes_of(v).count) / unit_});
  add_stay(v, point);
  return column;
}

// Point 0 has no memory row, because no op runs there. Values that live on from the step before may be away; all others
// are present.
ColumnIndex BoundProgram::present_at_begin(ValueIndex v) {
  return last_step(v) != kNone ? program_.add_column(0, 0, 1) : kAlways;
}

// The value as which the last step left `v`, if `v` is the first value of a storage that lives on from that step; else
// none.
ValueIndex BoundProgram::last_step(ValueIndex v) const {
  const StorageIndex s = step_.values[v].storage;
  const StorageIndex was = step_.in_last_step(s);
  return was != kNone && v == spans_.first[s] && spans_.known[was] ? spans_.last[was] : kNone;
}

// Makes a column "from w on", which is at most the sum of `in_window`, for window w, and `later`, from w + 1 on.
ColumnIndex BoundProgram::from_point_on(ColumnIndex in_window, ColumnIndex later) {
  if (in_window == kNever && later == kNever) return kNever;
  const ColumnIndex column = program_.add_column(0, 0, 1);
  std::vector<LinearProgram::Entry> entries{{column, -1}};
  if (is_column(in_window)) entries.push_back({in_window, 1});
  if (is_column(later)) entries.push_back({later, 1});
  program_.add_row(std::move(entries), 0);
  return column;
}

ColumnIndex BoundProgram::recomputed(ValueIndex v, PointIndex at, bool batch_norm, When when) {
  if (!can_recompute(v, batch_norm)) return kNever;
  const OpIndex maker = step_.values[v].maker;
  const std::optional<Recompute>& way = batch_norm ? step_.ops[maker].batch_norm : step_.ops[maker].recompute;
  Ways& ways = when == When::InWindow ? in_window_ : from_point_on_;
  ColumnIndex& slot = (batch_norm ? ways.batch_norm : ways.again)[at][maker];
  if (slot != kUnset) return slot;
  if (when == When::InWindow) {
    slot = program_.add_column(way->took.count / second_, 0, 1);
  } else {
    const ColumnIndex later = times_.has(at.next()) ? recomputed(v, at.next(), batch_norm, when) : kNever;
    slot = from_point_on(recomputed(v, at, batch_norm, When::InWindow), later);
  }
  waiting_.push_back({slot, maker, at, batch_norm, when});
  return slot;
}

ColumnIndex BoundProgram::restored(ValueIndex v, PointIndex at, When when) {
  if (!restorable(v) || gone(v, at)) return kNever;
  ColumnIndex& slot = (when == When::InWindow ? in_window_ : from_point_on_).restored[at][v];
  if (slot != kUnset) return slot;
  if (when == When::InWindow) return slot = new_restored(v);
  const ColumnIndex later = times_.has(at.next()) ? restored(v, at.next(), when) : kNever;
  return slot = from_point_on(restored(v, at, When::InWindow), later);
}

ColumnIndex BoundProgram::new_restored(ValueIndex v) {
  const ColumnIndex column = program_.add_column(double(bytes_of(v).count) / ask_.rates.read / second_, 0, 1);
  std::vector<LinearProgram::Entry> entries{{column, -1}};
  entries.push_back({written(v), 1});
  if (last_step(v) != kNone) entries.push_back({written(last_step(v)), 1});
  program_.add_row(std::move(entries), 0);
  return column;
}

// The spill file has v: this step wrote it, or the step before did.
ColumnIndex BoundProgram::in_spill_file(ValueIndex v) {
  const ValueIndex before = last_step(v);
  return before == kNone || before == v ? written(v) : from_point_on(written(v), written(before));
}

ColumnIndex BoundProgram::written(ValueIndex v) {
  ColumnIndex& slot = written_[v];
  if (slot != kUnset) return slot;
  const StorageIndex s = step_.values[v].storage;
  const bool unchanged =
      lives_from_step_to_step(step_.storages[s]) && spans_.first[s] == spans_.last[s];  // an earlier step wrote it
  return slot = program_.add_column(unchanged ? 0 : double(bytes_of(v).count) / ask_.rates.write / second_, 0, 1);
}

}  // namespace ullage::plan
