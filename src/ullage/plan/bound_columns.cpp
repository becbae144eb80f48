// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound_program.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::plan {

int BoundProgram::present(ValueIndex v, std::size_t point) {
  int& slot = present_[point][v.value];
  if (slot != kUnset) return slot;
  if (gone(v, point)) return slot = kNever;
  if (stuck(v, point) || bytes_of(v) <= tiny_) return slot = kAlways;
  if (point == 0) return slot = present_at_begin(v);
  const std::vector<ValueIndex>& needs = needs_[time(point)];
  const bool needed_here = std::find(needs.begin(), needs.end(), v) != needs.end();
  const int column = program_.add_column(0, needed_here ? 1 : 0, 1);
  slot = column;
  program_.extend_row(memory_rows_[point], {column, -double(bytes_of(v).count) / unit_});
  add_stay(v, point);
  return column;
}

// At the begin no op runs and memory is not asked for. What lives from step to step may be away; the rest is as it is.
int BoundProgram::present_at_begin(ValueIndex v) {
  const StepStorage& storage = step_.storages[step_.values[v.value].storage.value];
  return lives_from_step_to_step(storage) ? program_.add_column(0, 0, 1) : kAlways;
}

// At most what comes in the window behind the point and in all later ones.
int BoundProgram::from_point_on(int in_window, int later) {
  if (in_window == kNever && later == kNever) return kNever;
  const int column = program_.add_column(0, 0, 1);
  std::vector<LinearProgram::Entry> entries{{column, -1}};
  if (in_window >= 0) entries.push_back({in_window, 1});
  if (later >= 0) entries.push_back({later, 1});
  program_.add_row(std::move(entries), 0);
  return column;
}

int BoundProgram::remade(ValueIndex v, std::size_t at, bool apply, When when) {
  if (!can_remake(v, apply)) return kNever;
  const OpIndex maker = step_.values[v.value].maker;
  const std::optional<Remaking>& way = apply ? step_.ops[maker.value].apply : step_.ops[maker.value].rerun;
  Ways& ways = when == When::InWindow ? in_window_ : from_point_on_;
  int& slot = (apply ? ways.applied : ways.again)[at][maker.value];
  if (slot != kUnset) return slot;
  if (when == When::InWindow) {
    slot = program_.add_column(way->took.count / second_, 0, 1);
  } else {
    const int later = at + 1 < times_.size() ? remade(v, at + 1, apply, when) : kNever;
    slot = from_point_on(remade(v, at, apply, When::InWindow), later);
  }
  waiting_.push_back({slot, maker.value, at, apply, when});
  return slot;
}

int BoundProgram::restored(ValueIndex v, std::size_t at, When when) {
  if (!restorable(v) || gone(v, at)) return kNever;
  int& slot = (when == When::InWindow ? in_window_ : from_point_on_).restored[at][v.value];
  if (slot != kUnset) return slot;
  if (when == When::InWindow) return slot = new_restored(v);
  const int later = at + 1 < times_.size() ? restored(v, at + 1, when) : kNever;
  return slot = from_point_on(restored(v, at, When::InWindow), later);
}

int BoundProgram::new_restored(ValueIndex v) {
  const int column = program_.add_column(double(bytes_of(v).count) / ask_.rates.read / second_, 0, 1);
  std::vector<LinearProgram::Entry> entries{{column, -1}};
  const std::size_t s = step_.values[v.value].storage.value;
  const StepStorage& storage = step_.storages[s];
  entries.push_back({written(v), 1});
  if (lives_from_step_to_step(storage) && v == spans_.first[s]) entries.push_back({written(spans_.last[s]), 1});
  program_.add_row(std::move(entries), 0);
  return column;
}

int BoundProgram::written(ValueIndex v) {
  int& slot = written_[v.value];
  if (slot != kUnset) return slot;
  const std::size_t s = step_.values[v.value].storage.value;
  const bool unchanged =
      lives_from_step_to_step(step_.storages[s]) && spans_.first[s] == spans_.last[s];  // written in an earlier step
  return slot = program_.add_column(unchanged ? 0 : double(bytes_of(v).count) / ask_.rates.write / second_, 0, 1);
}

}  // namespace ullage::plan
