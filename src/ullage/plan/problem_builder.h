// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a step ready for the search, part by part: the values that may be moved, by which ops they come back, and the
// positions at which they are used and chosen of. problem.h says what comes of it.

#include "ullage/base/check.h"
#include "ullage/plan/problem.h"
#include "ullage/plan/remaking_ways.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

class ProblemBuilder final {
 public:
  ProblemBuilder(const Step& step, const Levers& levers, const Rates& rates, Bytes hot);

  Problem build();  // once

 private:
  static std::int64_t count(Bytes bytes) { return static_cast<std::int64_t>(bytes.count); }
  static std::int32_t narrow(std::size_t n) {
    ULLAGE_CHECK(n < INT32_MAX, "a step with too many ops to plan");
    return static_cast<std::int32_t>(n);
  }
  const StepStorage& storage_of(std::size_t v) const { return step_.storages[step_.values[v].storage.value]; }
  bool lives_on(std::size_t v) const { return storage_of(v).outlives && step_.values[v].overwritten_by == kNone; }

  // problem_builder.cpp: values and the ways in which they come back
  void number_value(std::size_t v);
  void number_values();
  Range list(const std::vector<ValueIndex>& reads);
  Range made_by(const StepOp& op, std::size_t most);
  std::int32_t last_chance(const std::vector<ValueIndex>& reads) const;
  std::int32_t add_recipe(std::size_t op, const Remaking& way, bool apply);
  void build_recipes();
  void wanted_until();
  void sum_costs();

  // problem_positions.cpp: what is not moved, and where one may choose
  void build_positions();
  void sum_static_levels();
  bool touches_moved(const StepOp& op) const;
  void add_op(std::size_t op);
  void add_static(std::size_t op, std::int64_t need);
  void add_slots(std::size_t op);
  void add_slot(std::size_t op, std::size_t v);
  void add_end();

  const Step& step_;
  Levers levers_;
  StepFacts facts_;
  RemakingWays ways_;
  HotOps hot_;
  std::vector<bool> moved_;           // storages
  std::vector<std::int32_t> number_;  // of each value of the step: its index in the problem, or -1
  std::vector<std::size_t> wanted_;   // of each value of the problem: the last op that could want it
  std::vector<std::int64_t> gap_most_, before_, need_;
  std::vector<std::int32_t> position_of_;         // of each op
  bool closed_ = false;                           // no op is added to the last position any more
  std::vector<std::vector<std::int32_t>> frees_;  // before gap i + 1: after op i
  std::vector<bool> frees_late_;                  // likewise: something is born before one of them goes
  Problem out_;
};

}  // namespace ullage::plan
