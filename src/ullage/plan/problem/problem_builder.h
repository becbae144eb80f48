// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a step ready for the search, part by part: the values that may be moved, by which ops they come back, and the
// positions at which they are used and chosen of. problem.h says what comes of it.

#include "ullage/base/check.h"
#include "ullage/plan/problem/problem.h"
#include "ullage/plan/problem/recompute_ways.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

class ProblemBuilder final {
 public:
  ProblemBuilder(const Step& step, const Levers& levers, const Rates& rates, Bytes hot);

  Problem build();  // once

 private:
  static std::int64_t count(Bytes bytes) { return static_cast<std::int64_t>(bytes.count); }
  // The index of what comes next into a table of the problem.
  template <class Index, class T>
  static Index next_of(const Table<Index, T>& table) {
    ULLAGE_CHECK(table.size() < INT32_MAX, "a step with too many ops to plan");
    return table.next_id();
  }
  const StepStorage& storage_of(ValueIndex v) const { return step_.storages[step_.values[v].storage]; }
  bool lives_on(ValueIndex v) const { return storage_of(v).outlives && step_.values[v].overwritten_by == kNone; }

  // problem_builder.cpp: values and the ways in which they come back
  void number_value(ValueIndex v);
  void number_values();
  IdRange<ListIndex> list(const std::vector<ValueIndex>& reads);
  IdRange<MadeIndex> made_by(const StepOp& op, std::size_t most);
  OpIndex last_chance(const std::vector<ValueIndex>& reads) const;
  RecipeIndex add_recipe(OpIndex op, const Recompute& way, bool batch_norm);
  void build_recipes();
  void wanted_until();
  void sum_costs();

  // problem_positions.cpp: what is not moved, and where one may choose
  void build_positions();
  void sum_static_levels();
  bool touches_moved(const StepOp& op) const;
  void add_position(const Problem::Position& position, OpIndex top) {
    out_.tops.push_back(top);
    out_.positions.push_back(position);
  }
  void add_op(OpIndex op);
  void add_static(OpIndex op, std::int64_t need);
  void add_slots(OpIndex op);
  void add_slot(OpIndex op, ValueIndex v);
  void add_end();

  const Step& step_;
  Levers levers_;
  StepFacts facts_;
  RecomputeWays ways_;
  HotOps hot_;
  Table<StorageIndex, bool> moved_;
  Table<ValueIndex, MovedIndex> number_;           // or none
  Table<MovedIndex, OpIndex> wanted_;              // the last op that could want it
  Table<GapIndex, std::int64_t> gap_most_, left_;  // of what is not moved: at most in it, and when it ends
  Table<OpIndex, std::int64_t> need_;              // likewise, while the op runs
  Table<OpIndex, PositionIndex> position_of_;      // one more than ops: the step's end
  bool closed_ = false;                            // no op is added to the last position any more
  Table<GapIndex, std::vector<MovedIndex>> frees_;
  Table<GapIndex, bool> frees_late_;      // something is born before one of them goes
  Table<SlotIndex, OpIndex> slot_until_;  // as Slot::until, of the step
  Problem out_;
};

}  // namespace ullage::plan
