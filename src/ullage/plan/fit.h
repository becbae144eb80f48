// SPDX-License-Identifier: Apache-2.0
#pragma once

// The entry point for planning. Takes a recorded step, the memory, and the bytes needed for other things than tensors.
// Returns a verified plan, or the least budget for which a plan exists. `ullage plan`, `ullage predict` and live runs
// call it.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/plan/model/step.h"
#include "ullage/plan/verify/verifier.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ullage::plan {

// The memory of a process in parts: the budget of a plan, which counts bytes of tensors, and the bytes that must fit in
// addition.
//
//   memory  |== budget: tensors ==|= rounding =|= kept free =|== outside ==|= margin =|
//           |== pages that a plan may fill ====|
struct BesideTensors {
  Bytes outside{};   // resident bytes of the process that are not the pool's
  Bytes margin{};    // store::Budget::kMargin
  Bytes rounding{};  // what whole pages and slabs take beyond the bytes asked for

  // The bytes that a plan of this budget leaves free in addition, so that a run can follow it (room.h).
  Bytes kept_free(Bytes budget) const;
  // The least memory of the process in which a plan may hold `budget` bytes of tensors.
  Bytes memory_for(Bytes budget) const;
  // The bytes of tensors that fit in `memory`; zero if there is no room.
  Bytes budget_of(Bytes memory) const;
};

// The bytes that a new run of the recorded program needs for other things than tensors. `outside` is what the recorded
// run held or reserved outside its pool. On the CPU it is at least what torch takes (store::Budget::kTorchAlone,
// kWarmUp).
BesideTensors beside_recorded(const Step& step, Kernels kernels);

// The step to plan: step `which`, counted from zero, else the most frequent one. It is taken from the file's last take,
// because takes for a prediction ascend in size. BadArgument: step `which` cannot be planned. BadFile: no step can, or
// the take contradicts itself. `name` is the recording's, for messages.
Result<Step> planned_step(trace::TraceFile& file, const StandsOn& on, std::optional<std::size_t> which,
                          const std::string& name);

// Libraries keep some storages and use them outside of ops; the pool evicts none of these. `sizes` has an entry for
// each. For each entry, makes one storage of that size immovable that no op of the step uses. If no movable one from
// before the step is left, does nothing. Which one does not matter: unused storages of one size are alike to a plan.
void hold_in_place(Step& step, std::span<const Bytes> sizes);

struct FitQuestion {
  Bytes memory;                              // of the process; or a pool's limit, if `outside` and `margin` are zero
  BesideTensors beside;                      // if `rounding` is below step.overhead, it is raised to that
  Ask ask{};                                 // `budget` is ignored: it is worked out from `memory`
  std::string name{};                        // of the recording, for messages
  std::function<void(const char*)> stage{};  // called with the name of each stage that begins; may be empty
};

struct Fit {
  Plan plan;                     // if Infeasible, `least` is the peak of a plan that was found, else the plain peak
  BesideTensors beside;          // `rounding` suffices for this plan, or for the one that gave `plan.least`
  Table<OpIndex, Bytes> levels;  // as in Verified; empty if there is no schedule
};

// Plans so that the pages of the plan, and all other bytes of the process, stay within the memory. A returned plan has
// passed the verifier. BadFile: the verifier refused a plan that the planner made.
Result<Fit> fit(const Step& step, const FitQuestion& question);

// Replaces the fit's plan by the plan of `curve` for the same budget, if that is cheaper and its pages fit. The
// searches for the curve may find a better plan. Then puts the fit's plan into the curve. Does nothing if the fit's
// plan has no schedule (it fits as it is, or is Infeasible). BadFile: as for fit().
Status join_curve(const Step& step, const std::string& name, std::vector<Plan>& curve, Fit& fit);

// fit() makes plans and verifies them through these; tests pass their own to fit_pages().
using MakePlan = std::function<Plan(Bytes budget)>;
using VerifyPlan = std::function<Result<Verified>(const Schedule&, Bytes budget)>;

// Plans with `beside.rounding`, which is that of the plain step. If the plan's pages take more, reserves that too and
// plans again, from the third try on for a budget that is smaller than it need be. After six tries it gives up. Then
// the plan is Infeasible, and its `least` is the budget of the last try, for which the returned rounding suffices.
// Returns an error only if the verifier does.
Result<Fit> fit_pages(Bytes memory, const BesideTensors& beside, const MakePlan& make, const VerifyPlan& verify);

// Puts `plan` into a curve, which ascends by budget. It replaces the Infeasible and the dearer plans of its own and
// larger budgets, so that more bytes still never cost more.
void put_into_curve(const Plan& plan, std::vector<Plan>& curve);

}  // namespace ullage::plan
