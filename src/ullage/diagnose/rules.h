// SPDX-License-Identifier: Apache-2.0
#pragma once

// The causes as data: a table of rules, each a small function from the evidence to a finding or nothing. A rule does
// not know other rules. Each family has a file, rules_*.cpp. docs/explain.md describes each rule.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/evidence.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::diagnose {

struct Finding {
  double confidence = 0;              // in [0, 1]
  std::vector<std::string> evidence;  // not empty
};

struct CauseRule {
  std::string_view id;
  std::string_view title;
  std::optional<Finding> (*rule)(const Evidence&);
};

std::span<const CauseRule> capacity_rules();       // the device is too small
std::span<const CauseRule> composition_rules();    // what the peak consists of
std::span<const CauseRule> fragmentation_rules();  // enough bytes are cached, but cannot be used
std::span<const CauseRule> outside_rules();        // device memory outside this process's pool
std::span<const CauseRule> cap_rules();            // a limit below the device's size
std::span<const CauseRule> leak_rules();           // memory that grows from step to step
std::span<const CauseRule> step_rules();           // what a program holds too long, or twice
std::span<const CauseRule> devices_rules();        // uneven work on several devices or processes
std::span<const CauseRule> host_rules();           // the host's memory
std::span<const CauseRule> not_memory_rules();     // no lack of device or host memory

// Returns every rule there is, each id once.
std::vector<CauseRule> all_rules();

// Returns the causes that the rules find, most probable first: at most six, each with a confidence of at least 0.05.
// For a message the confidences add up to at most 1, since each is the probability that the cause alone made the
// request fail.
std::vector<Cause> causes_of(const Evidence& evidence);

}  // namespace ullage::diagnose
