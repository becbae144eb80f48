// SPDX-License-Identifier: Apache-2.0
#pragma once

// One case, run twice: by our model, and by torch's allocator in a process of its own.

#include "cases.h"
#include "exchange.h"

#include "ullage/base/result.h"
#include "ullage/sim/caching_settings.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ullage::oracle {

// c10's ids of the default stream and of the first of its pool. They decide in which order c10's table lists the
// streams; run_real holds them against the real ones.
inline constexpr std::array<std::uint64_t, kStreams> kStreamIds{0, 3, 35, 67};

struct Run {
  std::vector<SeenEvent> events;
  Totals totals;
  double seconds = 0;  // in the allocator or the model alone
};

// In what versions of torch differ with the same settings.
struct Behaviour {
  sim::Ties ties = sim::Ties::OldestSegment;
  bool keeps_ranges_too_small = true;
};

// Of "2.14.1".
Behaviour behaviour_of(const std::string& torch);

Run run_model(const Case& one, const std::vector<Operation>& operations, const Behaviour& behaviour);

// `replay` is the program replay_real built for one version; files go below `scratch`.
Result<Run> run_real(const Case& one, const std::vector<Operation>& operations, const std::string& replay,
                     const std::string& scratch);

}  // namespace ullage::oracle
