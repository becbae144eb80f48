// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a case by our model, or by torch's allocator in a separate process.

#include "cases.h"
#include "exchange.h"

#include "ullage/base/result.h"
#include "ullage/sim/caching_settings.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ullage::oracle {

// c10's ids of the default stream and of the first streams of its pool. They decide in which order c10's table lists
// the streams. run_real() checks them against the real ones.
inline constexpr std::array<std::uint64_t, kStreams> kStreamIds{0, 3, 35, 67};

struct Run {
  std::vector<SeenEvent> events;
  Totals totals;
  double seconds = 0;  // in the allocator or the model alone
};

// How versions of torch differ under the same settings.
struct Behaviour {
  sim::Ties ties = sim::Ties::OldestSegment;
  bool keeps_ranges_too_small = true;
};

// `torch` is a version such as "2.14.1", from 2.11 on.
Behaviour behaviour_of(const std::string& torch);

Run run_model(const Case& one, const std::vector<Operation>& operations, const Behaviour& behaviour);

// `replay` is the path of replay_real, built for one version. Files are written below `scratch`.
Result<Run> run_real(const Case& one, const std::vector<Operation>& operations, const std::string& replay,
                     const std::string& scratch);

}  // namespace ullage::oracle
