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
//   again(o, w)      op o is run again in window w, at least once; costs its time. Likewise applied(o, w)
//   restored(v, w)   v is read back in window w; costs its bytes over the rate. written(v): once at least, if ever
//   the same three for window w or any later one, which is at most that of w and that of w + 1 on
// Rows:
//   need     what an op of window w reads is present at its begin, or comes again in it; what any op behind point p
//            reads is present at p, or comes again in some window behind it. What the program has and nobody reads any
//            more too, or it is written out
//   stay     what is present at a point was so at the one before, or came in between: made, remade, read back
//   chain    an op that is run again in a window, or in any from some point on, needs what it reads as if the program
//            needed it there. Both are told, because half a rerun in each of two windows makes a whole one
//   memory   present bytes, what cannot be moved, and the op's own rise are within the budget
//   border   what lives from step to step begins a step as it ended the one before
// Values too small to matter are always there and weigh nothing. Rows of a chain are added when its op is in use.

#include "ullage/plan/linear_program.h"
#include "ullage/plan/plan.h"
#include "ullage/plan/spans.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

class BoundProgram final {
 public:
  // `points`: indices of ops, ascending, each once. All must outlive it.
  BoundProgram(const Step& step, const Spans& spans, const Ask& ask, std::vector<std::size_t> points);

  LinearProgram::Outcome solve();
  // No schedule that fits costs less; of the rows so far.
  Seconds proven() const;
  // For each op by how many bytes what the solution has around it passes the budget, below zero where it does not:
  // where one more point would tell most.
  std::vector<double> excess() const;
  const LinearProgram& program() const { return program_; }

 private:
  static constexpr int kUnset = -1, kNever = -2, kAlways = -3;  // in place of a column
  using Table = std::vector<std::vector<int>>;                  // by point or window, then by value or op
  enum class When { InWindow, FromPointOn };
  struct Chain {
    int column;
    std::size_t op, at;  // window or point
    bool apply;
    When when;
  };
  struct Ways {  // in which what is not present comes again
    Table again, applied, restored;
  };

  static bool lives_from_step_to_step(const StepStorage& it) { return it.from_before && it.outlives; }
  // bound_program.cpp: what is there when, and what may be done with it
  std::size_t time(std::size_t point) const { return times_[point]; }
  std::size_t window_end(std::size_t window) const;
  Bytes bytes_of(ValueIndex v) const;
  bool exists(ValueIndex v, std::size_t point) const;
  bool gone(ValueIndex v, std::size_t point) const;
  bool restorable(ValueIndex v) const;
  bool lost_in(ValueIndex v, std::size_t window) const;
  bool can_remake(ValueIndex v, bool apply) const;
  std::size_t stuck_until(ValueIndex v) const;
  bool stuck(ValueIndex v, std::size_t point) const;

  double part_of(ValueIndex v, std::size_t point) const;
  double part_in(ValueIndex v, std::size_t window) const;

  // bound_columns.cpp
  int present(ValueIndex v, std::size_t point);
  int present_at_begin(ValueIndex v);
  int remade(ValueIndex v, std::size_t at, bool apply, When when);
  int restored(ValueIndex v, std::size_t at, When when);
  int new_restored(ValueIndex v);
  int from_point_on(int in_window, int later);
  int written(ValueIndex v);

  // bound_rows.cpp
  void add_stay(ValueIndex v, std::size_t point);
  void add_chain(const Chain& chain);
  void add_memory(std::size_t point);
  void add_needs(std::size_t window);
  void add_needs_from(std::size_t point);
  void add_borders();
  // carried from the window's begin, or comes in it: at least `least` and as much as `user`, where there is one.
  void require(ValueIndex v, std::size_t at, When when, bool carry, int user, double least, int instead = kNever);
  std::vector<double> fixed_levels() const;
  double rise_of(const StepOp& op) const;

  const Step& step_;
  const Spans& spans_;
  const Ask& ask_;
  std::vector<std::size_t> times_;              // by point; the first is the begin
  std::vector<std::vector<ValueIndex>> needs_;  // by op: what must be there when it begins
  std::vector<double> fixed_;                   // by op: bytes
  std::vector<std::size_t> last_read_;          // by value: behind the last op that reads it
  double unit_ = 1, second_ = 1;                // bytes and seconds in the program
  Bytes tiny_;
  LinearProgram program_;
  std::vector<int> memory_rows_;
  Table present_;
  Ways in_window_, from_point_on_;
  std::vector<int> written_;
  std::vector<Chain> waiting_;
};

}  // namespace ullage::plan
