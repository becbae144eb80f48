// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds a Problem (problem.h) part by part: first the values that may be moved, then the recipes that bring them back,
// then the positions with their slots. "Static" means the storages that the plan does not move.

#include "ullage/base/check.h"
#include "ullage/plan/problem/problem.h"
#include "ullage/plan/problem/recompute_ways.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

class ProblemBuilder final {
 public:
  // As problem_of().
  ProblemBuilder(const Step& step, const Levers& levers, const Rates& rates, Bytes hot);

  Problem build();  // call once

 private:
  static std::int64_t count(Bytes bytes) { return static_cast<std::int64_t>(bytes.count); }
  // The index of the next item of a table. Checks that it fits in 32 bits.
  template <class Index, class T>
  static Index next_of(const Table<Index, T>& table) {
    ULLAGE_CHECK(table.size() < INT32_MAX, "a step with too many ops to plan");
    return table.next_id();
  }
  const StepStorage& storage_of(ValueIndex v) const { return step_.storages[step_.values[v].storage]; }
  bool lives_on(ValueIndex v) const { return storage_of(v).outlives && step_.values[v].overwritten_by == kNone; }

  // problem_builder.cpp: values and their recipes
  void number_value(ValueIndex v);
  void number_values();
  IdRange<ListIndex> list(const std::vector<ValueIndex>& reads);
  IdRange<MadeIndex> made_by(const StepOp& op, std::size_t most);
  OpIndex last_chance(const std::vector<ValueIndex>& reads) const;
  RecipeIndex add_recipe(OpIndex op, const Recompute& way, bool batch_norm);
  void build_recipes();
  void wanted_until();
  void sum_costs();

  // problem_positions.cpp: static levels, positions and slots
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
  Table<ValueIndex, MovedIndex> number_;  // kNone: the value is not moved
  // The last op that could need the value, or need it to recompute another.
  Table<MovedIndex, OpIndex> wanted_;
  Table<GapIndex, std::int64_t> gap_most_, left_;  // static level: highest in the gap, and at its end
  Table<OpIndex, std::int64_t> need_;              // static level, highest while the op runs, with its rise
  Table<OpIndex, PositionIndex> position_of_;      // one more than ops: the step's end
  bool closed_ = false;                            // the last position takes no more ops
  Table<GapIndex, std::vector<MovedIndex>> frees_;
  Table<GapIndex, bool> frees_late_;      // something is born in the gap before one of `frees_` is freed
  Table<SlotIndex, OpIndex> slot_until_;  // Slot::until as an op
  Problem out_;
};

}  // namespace ullage::plan
