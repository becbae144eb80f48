// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides, for `ullage run --allow bf16,if-needed`, from which step on a program's forward passes are cast to bf16.
// Steps are exact while the program fits, or while an exact plan costs little (plan::kLittleTime). If an exact plan
// costs more, some steps are timed under it and then some in bf16, and the faster way is kept. If no exact plan fits,
// steps are cast at once.

#include "ullage/base/bytes.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace ullage::runtime {

class CastChoice final {
 public:
  // Steps that are timed in each way; the shortest counts.
  static constexpr int kTimed = 4;

  enum class Act { Stay, Cast, BeExact };
  // Why steps were cast. DearPlan stays, also if the trial ended with exact steps again.
  enum class Why { NotNeeded, NoExactPlan, DearPlan };

  // Call this with the result of planning the exact step. `share` is the part of a step's time that the plan adds;
  // nothing: no plan fits. Any thread may call. Ignored once a trial began or no plan was found to fit.
  void exact_plan(std::optional<double> share);
  // Call it at each border of steps, on the program's thread. `settled`: no step is being observed, and no plan is
  // being made. Returns how the steps from here on are to run.
  Act at_border(Seconds now, bool settled);

  // Are forward passes to be cast now? Any thread may call.
  bool casts() const { return casts_.load(); }
  Why why() const;
  // The shortest step timed under the exact plan, and in bf16; nothing: none was.
  std::optional<Seconds> exact_step() const;
  std::optional<Seconds> cast_step() const;

 private:
  enum class State { Exact, NoExactPlan, TimesExact, TimesCast, Chosen };
  bool timed(std::optional<Seconds>& shortest, Seconds now, bool settled);

  mutable std::mutex lock_;
  std::atomic<bool> casts_{false};
  State state_ = State::Exact;
  Why why_ = Why::NotNeeded;
  std::optional<Seconds> border_;  // the last one, if planning was settled there
  int count_ = 0;                  // steps timed so far in this way
  std::optional<Seconds> exact_, cast_;
};

}  // namespace ullage::runtime
