// SPDX-License-Identifier: Apache-2.0
#pragma once

// The planner's question and its answer. The answer is that the step fits as it is, that it fits with a schedule, or
// that it does not fit. In the last case it names a budget that would do.

#include "ullage/base/bytes.h"
#include "ullage/plan/model/levers.h"
#include "ullage/plan/model/schedule.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

// Bytes per second to and from the spill file (for a card: host memory).
struct Rates {
  double write = 1.5e9;
  double read = 1.5e9;
  // Fixed cost of each Spill, each Restore, and each value that a Recompute or a BatchNorm brings back.
  Seconds each{1e-4};
};

struct Ask {
  Bytes budget;  // most bytes of tensors (as asked for) that may be present at once
  Levers levers;
  Rates rates;
  std::uint64_t seed = 1;
  // How long to search at most, in simulated ops, so that the result does not depend on the machine's speed. Measured:
  // about 40 million a second. A step of few ops is searched for a shorter time (search/solver.cpp).
  std::uint64_t effort = 40'000'000;
  // If it becomes true, the search ends soon with the best plan so far. Read every few simulations. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// One use of a lever in a plan, as listed for a person.
struct LeverUse {
  std::string lever;  // its word in levers.h
  std::string site;   // "aten::relu net.3", or the storage's name
  Bytes bytes{};
  Seconds seconds{};  // per step
};

struct Plan {
  enum class Outcome { Fits, Planned, Infeasible };
  Outcome outcome = Outcome::Fits;
  Bytes budget;  // as asked
  Bytes peak;    // most bytes present at once under the plan; without a schedule, the plain peak
  Bytes plain_peak;
  // A bound below which no plan exists. If make_plan() or fit() answers Infeasible: a budget that would do.
  Bytes least;
  std::string least_set_by;      // the op that sets it: "aten::convolution_backward net.3 (backward)"
  Seconds step;                  // of plain execution
  Seconds overhead;              // what the plan adds to a step
  std::optional<Seconds> bound;  // no plan with these levers costs less; empty if not computed
  Schedule schedule;
  std::vector<LeverUse> levers;  // largest bytes first
};

}  // namespace ullage::plan
