// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far allowances raise the peak: scratch that ops may take beyond what the laws give (thresholds.h: allowances()).

#include "ullage/predict/thresholds.h"
#include "ullage/trace/take/take.h"

#include <optional>
#include <span>
#include <vector>

namespace ullage::predict {

// An allowance of this many bytes or more means that no bound is known for the op.
inline constexpr Bytes kNoBound{1ull << 50};

struct Lift {
  EventId at;  // the event of the op with the most live bytes
  OpId op;
  Bytes live;   // there, without the allowance
  Bytes bytes;  // of the allowance
};

// Returns the op that reaches the most live bytes with its allowance; nothing if there are no allowances. `live` is
// indexed by EventId.
std::optional<Lift> highest(const trace::Take& take, const std::vector<Bytes>& live,
                            std::span<const Allowance> allowances);

// Returns the trace with each allowance as a storage from its op's begin to its end. Use it for run_pool() alone: event
// numbers are shifted, and ops are left out.
trace::Trace with_allowances(const trace::Take& take, std::span<const Allowance> allowances);

}  // namespace ullage::predict
