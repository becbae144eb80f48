// SPDX-License-Identifier: Apache-2.0
#pragma once

// The linear program behind lower_bound(). Some ops, the points, divide the step into windows. Window 0 begins with the
// step, window p at point p:
//
//   begin      point 1        point 2                point 3        end
//   |-- window 0 --|-- window 1 --|------ window 2 ------|-- window 3 --|
//
// Columns. A schedule sets each to 0 or 1; a solution may be between:
//   present(v, p)     value v is in memory when the op at point p begins; has its bytes in the memory row of p
//   again(o, w)       op o is recomputed in window w, once or more; costs its time
//   batch_norm(o, w)  the same for StepOp::batch_norm
//   restored(v, w)    v is read back in window w; costs its bytes over the rate
//   written(v)        v is written, once or more; costs its bytes over the rate
// The columns again, batch_norm and restored have a second kind, "from w on": in window w or a later one. Such a column
// is at most the sum of the column for w and the column from w + 1 on.
//
// Rows:
//   need     A value that an op of window w reads is present when w begins, or comes back in w. A value that any op
//            from point p on reads is present at p, or comes back in window p or later. The same holds for a value that
//            the program keeps and no later op reads, unless it is written.
//   stay     What is present at a point was so at the point before, or came in between: made, recomputed, restored.
//   chain    An op that is recomputed in a window needs what it reads as if the program ran it there. The same holds
//            from w on; without that, half a recompute in each of two windows would do for a whole one.
//   memory   Present bytes, what cannot be moved, and the op's own rise are within the budget.
//   border   What outlives the step is present when it ends. If it lives from step to step, it needs to be present only
//            as far as it was when the step began.
// Values too small to matter are always present and have no bytes. The rows of a chain are added once a solution
// recomputes its op.

#include "ullage/plan/bound/linear_program.h"
#include "ullage/plan/bound/spans.h"
#include "ullage/plan/model/plan.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

// Names a point and the window after it. Point 0 is the step's begin.
using PointIndex = Id<struct PointTag>;

class BoundProgram final {
 public:
  // `points` ascend, each once. Step, spans and ask must outlive the program.
  BoundProgram(const Step& step, const Spans& spans, const Ask& ask, const std::vector<OpIndex>& points);

  // Solves, adds the rows of the chains in use, and solves again until there are none to add. A pivot takes as much of
  // `work` as there are columns. GivenUp also if no work is left.
  LinearProgram::Outcome solve(std::uint64_t& work);
  // A lower bound on the cost of any schedule that fits.
  Seconds proven() const;
  // For each op: the bytes by which the solution exceeds the budget there; below zero if it does not. Worked out from
  // the values at the points. Another point is most useful where this is largest.
  Table<OpIndex, double> excess() const;
  const LinearProgram& program() const { return program_; }

 private:
  // In place of a column: not made yet, a constant 0, a constant 1.
  static constexpr ColumnIndex kUnset{-1}, kNever{-2}, kAlways{-3};
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
  struct Ways {  // the columns by which a value comes back
    Columns<OpIndex> again, batch_norm;
    Columns<ValueIndex> restored;
  };

  static bool lives_from_step_to_step(const StepStorage& it) { return it.from_before && it.outlives; }
  // bound_program.cpp: when a value exists, and what may be done with it
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
  ValueIndex last_step(ValueIndex v) const;

  double part_of(ValueIndex v, PointIndex point) const;
  double part_in(ValueIndex v, PointIndex window) const;

  // bound_columns.cpp
  ColumnIndex present(ValueIndex v, PointIndex point);
  ColumnIndex present_at_begin(ValueIndex v);
  ColumnIndex recomputed(ValueIndex v, PointIndex at, bool batch_norm, When when);
  ColumnIndex restored(ValueIndex v, PointIndex at, When when);
  ColumnIndex new_restored(ValueIndex v);
  ColumnIndex from_point_on(ColumnIndex in_window, ColumnIndex later);
  ColumnIndex in_spill_file(ValueIndex v);
  ColumnIndex written(ValueIndex v);

  // bound_rows.cpp
  void add_stay(ValueIndex v, PointIndex point);
  void add_chain(const Chain& chain);
  void add_memory(PointIndex point);
  void add_needs(PointIndex window);
  void add_needs_from(PointIndex point);
  void add_borders();
  // Adds a row. It says: a + b + instead >= least + user. Column a: v is present when window `at` begins (only if
  // `carry`). Columns b: v comes back in that window, or from it on (`when`). `instead` and `user` may be none.
  void require(ValueIndex v, PointIndex at, When when, bool carry, ColumnIndex user, double least,
               ColumnIndex instead = kNever);
  Table<OpIndex, double> fixed_levels() const;
  double rise_of(const StepOp& op) const;

  const Step& step_;
  const Spans& spans_;
  const Ask& ask_;
  Table<PointIndex, OpIndex> times_;
  Table<OpIndex, std::vector<ValueIndex>> needs_;  // what must be present when the op begins
  Table<OpIndex, double> fixed_;                   // bytes that no schedule can move, when the op begins
  Table<ValueIndex, OpIndex> last_read_;           // the op after the last one that needs it
  double unit_ = 1, second_ = 1;                   // the bytes and the seconds that count as 1 in the linear program
  Bytes tiny_;                                     // values up to this size are too small to matter
  LinearProgram program_;
  Table<PointIndex, RowIndex> memory_rows_;
  Columns<ValueIndex> present_;
  Ways in_window_, from_point_on_;
  Table<ValueIndex, ColumnIndex> written_;
  std::vector<Chain> waiting_;  // chains whose rows are not added yet
};

}  // namespace ullage::plan
