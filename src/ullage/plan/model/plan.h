// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a planner answers: nothing is needed, here is how, or it cannot be done and what would be needed.

#include "ullage/base/bytes.h"
#include "ullage/plan/model/levers.h"
#include "ullage/plan/model/schedule.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

// Bytes a second to and from the place where spilled bytes go, as measured.
struct Rates {
  double write = 1.5e9;
  double read = 1.5e9;
  // Beside the bytes: of each Spill, each Restore, and each value that a Recompute or a BatchNorm brings back.
  Seconds each{1e-4};
};

struct Ask {
  Bytes budget;  // of the pool: most bytes present at once
  Levers levers;
  Rates rates;
  std::uint64_t seed = 1;
  // How long to search, in ops simulated, so that it does not depend on the machine: about 40 million a second.
  std::uint64_t effort = 40'000'000;
  // Looked at every few simulations; true: the search ends at once with the best so far. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// What a plan does, one line for a person.
struct LeverUse {
  std::string lever;  // its word in levers.h
  std::string site;   // "aten::relu net.3", the storage's name
  Bytes bytes{};
  Seconds seconds{};  // a step
};

struct Plan {
  enum class Outcome { Fits, Planned, Infeasible };
  Outcome outcome = Outcome::Fits;
  Bytes budget;  // asked for
  Bytes peak;    // most bytes present at once under the plan
  Bytes plain_peak;
  Bytes least;               // the least budget for which a plan was found, or a bound on it where none was looked for
  std::string least_set_by;  // the op or phase that sets it: "aten::convolution_backward net.3 (backward)"
  Seconds step;              // plain
  Seconds overhead;
  std::optional<Seconds> bound;  // no plan with these levers costs less; nothing: not worked out
  Schedule schedule;
  std::vector<LeverUse> levers;  // largest bytes first
};

}  // namespace ullage::plan
