// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds by how much slack raises the peak. Slack is the scratch that ops may take beyond what the laws give
// (thresholds.h: slack_of_ops()).

#include "ullage/predict/thresholds.h"
#include "ullage/trace/take/take.h"

#include <optional>
#include <span>
#include <vector>

namespace ullage::predict {

// Slack of this many bytes or more means that no bound is known for the op.
inline constexpr Bytes kNoBound{1ull << 50};

struct Lift {
  EventId at;  // the event within the op at which the most bytes are live
  OpId op;
  Bytes live;   // live bytes at that event, without the slack
  Bytes bytes;  // the slack of the op
};

// Returns the op whose live bytes and slack add up to the most; nothing if no op has slack. `live` is indexed by
// EventId.
std::optional<Lift> highest(const trace::Take& take, const std::vector<Bytes>& live, std::span<const Slack> slack);

// Returns the trace with the slack of each op as a storage from its op's begin to its end. Slack without a bound
// (kNoBound) is left out. Use the result for run_pool() alone: event numbers are shifted, and ops are left out.
trace::Trace with_slack(const trace::Take& take, std::span<const Slack> slack);

}  // namespace ullage::predict
