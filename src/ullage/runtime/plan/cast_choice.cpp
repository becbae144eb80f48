// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/cast_choice.h"

#include "ullage/plan/model/plan.h"

#include <algorithm>
#include <utility>

namespace ullage::runtime {

void CastChoice::exact_plan(std::optional<double> share) {
  const std::lock_guard hold(lock_);
  if (state_ != State::Exact || (share && *share <= plan::kLittleTime)) return;
  state_ = share ? State::TimesExact : State::NoExactPlan;
}

// Times the step that ends at this border, if both of its borders are settled: at neither was a step observed or a plan
// made. Returns whether kTimed steps were timed; then the count begins anew.
bool CastChoice::timed(std::optional<Seconds>& shortest, Seconds now, bool settled) {
  const std::optional<Seconds> before = std::exchange(border_, settled ? std::optional(now) : std::nullopt);
  if (!before || !settled) return false;
  const Seconds step{now.count - before->count};
  shortest = shortest ? std::min(*shortest, step) : step;
  if (++count_ < kTimed) return false;
  count_ = 0;
  border_.reset();
  return true;
}

CastChoice::Act CastChoice::at_border(Seconds now, bool settled) {
  const std::lock_guard hold(lock_);
  switch (state_) {
    case State::NoExactPlan:
      if (!settled) return Act::Stay;
      state_ = State::Chosen, why_ = Why::NoExactPlan;
      casts_.store(true);
      return Act::Cast;
    case State::TimesExact:
      if (!timed(exact_, now, settled)) return Act::Stay;
      state_ = State::TimesCast, why_ = Why::DearPlan;
      casts_.store(true);
      return Act::Cast;
    case State::TimesCast:
      if (!timed(cast_, now, settled)) return Act::Stay;
      state_ = State::Chosen;
      if (*cast_ < *exact_) return Act::Stay;
      casts_.store(false);
      return Act::BeExact;
    case State::Exact:
    case State::Chosen:
      break;
  }
  return Act::Stay;
}

CastChoice::Why CastChoice::why() const {
  const std::lock_guard hold(lock_);
  return why_;
}

std::optional<Seconds> CastChoice::exact_step() const {
  const std::lock_guard hold(lock_);
  return exact_;
}

std::optional<Seconds> CastChoice::cast_step() const {
  const std::lock_guard hold(lock_);
  return cast_;
}

}  // namespace ullage::runtime
