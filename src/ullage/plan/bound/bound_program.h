// SPDX-License-Identifier: Apache-2.0
#pragma once

// The linear program behind lower_bound. The step is cut at some ops, the points; between two of them is a window, one
// more before the first and one behind the last:
//
//   begin      point 1        point 2                point 3        end
//   |-- window 0 --|-- window 1 --|------ window 2 ------|-- window 3 --|
//
// Columns, each the least that must be true of any schedule, so between 0 and 1:
//   present(v, p)    value v is in memory when op p begins; weighs its bytes in the row of point p
//   again(o, w)      op o is run again in window w, at least once; costs its time. Likewise batch_norm(o, w)
//   restored(v, w)   v is read back in window w; costs its bytes over the rate. written(v): once at least, if ever
//   the same three for window w or any later one, which is at most that of w and that of w + 1 on
// Rows:
//   need     what an op of window w reads is present at its begin, or comes again in it; what any op behind point p
//            reads is present at p, or comes again in some window behind it. What the program has and nobody reads any
//            more too, or it is written out
//   stay     what is present at a point was so at the one before, or came in between: made, recomputed, read back
//   chain    an op that is run again in a window, or in any from some point on, needs what it reads as if the program
//            needed it there. Both are told, because half a recompute in each of two windows makes a whole one
//   memory   present bytes, what cannot be moved, and the op's own rise are within the budget
//   border   what lives from step to step begins a step as it ended the one before
// Values too small to matter are always there and weigh nothing. Rows of a chain are added when its op is in use.

#include "ullage/plan/bound/linear_program.h"
#include "ullage/plan/bound/spans.h"
#include "ullage/plan/model/plan.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

// Of a point, and of the window behind it; the first point is the step's begin.
using PointIndex = Id<struct PointTag>;

class BoundProgram final {
 public:
  // `points`: ascending, each once. All must outlive it.
  BoundProgram(const Step& step, const Spans& spans, const Ask& ask, const std::vector<OpIndex>& points);

  LinearProgram::Outcome solve();
  // No schedule that fits costs less; of the rows so far.
  Seconds proven() const;
  // For each op by how many bytes what the solution has around it passes the budget, below zero where it does not:
  // where one more point would tell most.
  Table<OpIndex, double> excess() const;
  const LinearProgram& program() const { return program_; }

 private:
  static constexpr ColumnIndex kUnset{-1}, kNever{-2}, kAlways{-3};  // in place of a column
  static bool is_column(ColumnIndex column) { return column >= ColumnIndex{0}; }
  template <class Index>
  using Columns = Table<PointIndex, Table<Index, ColumnIndex>>;
  enum class When { InWindow, FromPointOn };
  struct Chain {
    ColumnIndex column;
    OpIndex op;
    PointIndex at;
    bool batch_norm;
    When when;
  };
  struct Ways {  // in which what is not present comes again
    Columns<OpIndex> again, batch_norm;
    Columns<ValueIndex> restored;
  };

  static bool lives_from_step_to_step(const StepStorage& it) { return it.from_before && it.outlives; }
  // bound_program.cpp: what is there when, and what may be done with it
  OpIndex time(PointIndex point) const { return times_[point]; }
  OpIndex window_end(PointIndex window) const;
  Bytes bytes_of(ValueIndex v) const;
  bool exists(ValueIndex v, PointIndex point) const;
  bool gone(ValueIndex v, PointIndex point) const;
  bool restorable(ValueIndex v) const;
  bool lost_in(ValueIndex v, PointIndex window) const;
  bool can_recompute(ValueIndex v, bool batch_norm) const;
  OpIndex stuck_until(ValueIndex v) const;
  bool stuck(ValueIndex v, PointIndex point) const;

  double part_of(ValueIndex v, PointIndex point) const;
  double part_in(ValueIndex v, PointIndex window) const;

  // bound_columns.cpp
  ColumnIndex present(ValueIndex v, PointIndex point);
  ColumnIndex present_at_begin(ValueIndex v);
  ColumnIndex recomputed(ValueIndex v, PointIndex at, bool batch_norm, When when);
  ColumnIndex restored(ValueIndex v, PointIndex at, When when);
  ColumnIndex new_restored(ValueIndex v);
  ColumnIndex from_point_on(ColumnIndex in_window, ColumnIndex later);
  ColumnIndex written(ValueIndex v);

  // bound_rows.cpp
  void add_stay(ValueIndex v, PointIndex point);
  void add_chain(const Chain& chain);
  void add_memory(PointIndex point);
  void add_needs(PointIndex window);
  void add_needs_from(PointIndex point);
  void add_borders();
  // carried from the window's begin, or comes in it: at least `least` and as much as `user`, where there is one.
  void require(ValueIndex v, PointIndex at, When when, bool carry, ColumnIndex user, double least,
               ColumnIndex instead = kNever);
  Table<OpIndex, double> fixed_levels() const;
  double rise_of(const StepOp& op) const;

  const Step& step_;
  const Spans& spans_;
  const Ask& ask_;
  Table<PointIndex, OpIndex> times_;
  Table<OpIndex, std::vector<ValueIndex>> needs_;  // what must be there when it begins
  Table<OpIndex, double> fixed_;                   // bytes
  Table<ValueIndex, OpIndex> last_read_;           // behind the last op that reads it
  double unit_ = 1, second_ = 1;                   // bytes and seconds in the program
  Bytes tiny_;
  LinearProgram program_;
  Table<PointIndex, RowIndex> memory_rows_;
  Columns<ValueIndex> present_;
  Ways in_window_, from_point_on_;
  Table<ValueIndex, ColumnIndex> written_;
  std::vector<Chain> waiting_;
};

}  // namespace ullage::plan
