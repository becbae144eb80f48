// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/charges.h"

#include "ullage/store/last_tries.h"

#include <algorithm>
#include <utility>

namespace ullage::runtime {

// Reserves `bytes`, evicting tensors if it must. Returns how many bytes are missing; if any are, nothing is reserved.
Bytes Charges::set_aside(Bytes bytes) {
  store::LastTries last;
  pager_.missing();  // measures the outside now: the charge comes on top of it
  budget_.charge(bytes);
  for (;;) {
    const Bytes given_back = pager_.trim();
    const Bytes missing = pager_.missing();
    if (missing == Bytes{}) return missing;
    if (given_back > Bytes{}) continue;  // more pages may have become idle since
    if (last.another(last_resort_)) continue;
    budget_.discharge(bytes);
    return missing;
  }
}

void Charges::reserve(Bytes bytes, const std::string& what) {
  const Bytes missing = set_aside(bytes);
  if (missing > Bytes{}) {
    const store::StoreCounts counts = pager_.store().counts();
    const Bytes limit = budget_.resident_limit(counts.resident);
    const auto why = store::Refusal::Reason::OverLimit;
    pool_.refuse(store::Refusal{why, bytes, counts.live, counts.resident, limit, limit + missing}, what);
  }
}

void Charges::charge(Bytes bytes, const std::string& what) {
  reserve(bytes, what);
  note_(static_cast<std::int64_t>(bytes.count));
}

void Charges::discharge(Bytes bytes) {
  release(bytes);
  note_(-static_cast<std::int64_t>(bytes.count));
}

Bytes Charges::limit_sinks_by(Bytes more) const {
  const Bytes outside = budget_.outside_for_good();
  return saturating_sub(outside + more, std::max(outside, budget_.expected_outside()));
}

Bytes Charges::limit_after_step(Bytes limit, Bytes more) const {
  const Bytes outside = budget_.outside_for_good();
  const Bytes left_out = std::max(outside, budget_.expected_outside());
  return saturating_sub(limit + budget_.expected() + left_out, std::max(outside + more, budget_.expected_after_step()));
}

Charges::PlanningRoom Charges::begin_planning(Bytes bytes) {
  of_planning_ = limit_sinks_by(bytes);
  const store::PagerCounts counts = pager_.counts();
  const bool beside = pager_.store().counts().limit + counts.files_there >= counts.at_once_peak + of_planning_;
  budget_.charge(of_planning_);
  budget_.take_from_reserve(bytes - of_planning_);
  budget_.leave_out_of_least(true);
  while (pager_.trim() > Bytes{}) {  // gives way now, not at the watch's next look, because planning begins at once
  }
  if (beside) return PlanningRoom::Beside;
  if (pager_.missing() == Bytes{}) return PlanningRoom::Alone;
  end_planning();
  return PlanningRoom::None;
}

void Charges::end_planning() {
  budget_.discharge(std::exchange(of_planning_, {}));
  budget_.take_from_reserve({});
  budget_.leave_out_of_least(false);
}

}  // namespace ullage::runtime
