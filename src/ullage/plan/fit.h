// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place that plans: from a take, a memory and what stands beside the pool to a verified plan, or to the least
// memory that would do. `ullage plan`, `ullage predict` and a run that plans for itself all ask here.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/plan/model/step.h"
#include "ullage/plan/verify/verifier.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

// The memory of a process in parts: the bytes of tensors that a plan keeps to, and what there must be beside them.
//
//   memory  |== budget: tensors ==|= rounding =|= kept free =|== outside ==|= margin =|
//           |== pages that a plan may fill ====|
struct BesideTensors {
  Bytes outside{};   // of the process, not the pool's
  Bytes margin{};    // store::Budget::kMargin
  Bytes rounding{};  // whole pages and slabs behind the bytes asked for

  // What else a plan leaves free (room.h), so that a run can follow it, for a budget.
  Bytes kept_free(Bytes budget) const;
  // The least memory in which a plan can have `budget` bytes of tensors: both, and all of the above.
  Bytes memory_for(Bytes budget) const;
  // The bytes of tensors for which there is room in `memory`; zero where there is none.
  Bytes budget_of(Bytes memory) const;
};

// For a run that begins anew: what the recorded one held outside its pool, on a processor at least what torch takes.
BesideTensors beside_recorded(const Step& step, Kernels kernels);

// The step of a recording's last take that is planned (of several, which are of small sizes, the last is the largest):
// step `which` from zero, or else a typical one. BadArgument: there is no step `which`. BadFile: nothing in it can be
// planned. `name`: the recording's, for messages.
Result<Step> planned_step(trace::TraceFile& file, const StandsOn& on, std::optional<std::size_t> which,
                          const std::string& name);

struct FitQuestion {
  Bytes memory;          // of the process; or the limit of a pool, when nothing stands outside or is margin
  BesideTensors beside;  // `rounding` may be less than the step's own
  Ask ask{};             // `budget` is worked out
  std::string name{};    // of the recording, for messages
  std::function<void(const char*)> stage{};  // what goes on; may be empty
};

struct Fit {
  Plan plan;                     // Infeasible: `least` is a budget for which a plan was made, or the plain peak
  BesideTensors beside;          // with the pages that the plan needs, or the least one
  Table<OpIndex, Bytes> levels;  // Verified's; empty without a schedule
};

// The plan has passed the verifier, pages and all: they and what is kept free stay within the memory. BadFile: a plan
// that was made did not.
Result<Fit> fit(const Step& step, const FitQuestion& question);

// The curve's searches may have found a cheaper plan for the fit's budget than the search for it alone: that is taken,
// where its pages fit. The point of the fit then stands in the curve. BadFile: as above.
Status join_curve(const Step& step, const std::string& name, std::vector<Plan>& curve, Fit& fit);

// Of these the above are made; tests put others here.
using MakePlan = std::function<Plan(Bytes budget)>;
using VerifyPlan = std::function<Result<Verified>(const Schedule&, Bytes budget)>;

// How many bytes pages and slabs take on top is known of the plain step: `beside` has it. Where a plan needs more, that
// is set aside and planned again. Where this leads nowhere the plan is Infeasible, and its least is the budget of the
// last one: with the pages that one needs, `beside` has them too, it fits. An error is the verifier's.
Result<Fit> fit_pages(Bytes memory, const BesideTensors& beside, const MakePlan& make, const VerifyPlan& verify);

// The point of `plan` in a curve; more bytes still never cost more.
void put_into_curve(const Plan& plan, std::vector<Plan>& curve);

}  // namespace ullage::plan
