// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scratch that may come on top of what the law tells (thresholds.h: allowances()), and what it does to the peak.

#include "ullage/predict/thresholds.h"
#include "ullage/trace/take/take.h"

#include <optional>
#include <span>
#include <vector>

namespace ullage::predict {

// From here on an allowance only says that nothing is known of the op.
inline constexpr Bytes kNoBound{1ull << 50};

struct Lift {
  EventId at;  // where most is live within the op
  OpId op;
  Bytes live;   // there, without it
  Bytes bytes;  // that may come on top
};

// The op that gets highest with its allowance; none: there are no allowances. `live`: index EventId.
std::optional<Lift> highest(const trace::Take& take, const std::vector<Bytes>& live,
                            std::span<const Allowance> allowances);

// The trace with all that scratch in it, each from its op's begin to its end; for run_pool() alone, since ids and
// numbers of events are others.
trace::Trace with_allowances(const trace::Take& take, std::span<const Allowance> allowances);

}  // namespace ullage::predict
