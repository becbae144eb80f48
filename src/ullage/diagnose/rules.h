// SPDX-License-Identifier: Apache-2.0
#pragma once

// The causes as data: a table of rules, each a small function from the evidence to a finding or nothing. A rule does
// not know other rules. Each family has a file. docs/explain.md describes each rule.

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

std::span<const CauseRule> capacity_rules();
std::span<const CauseRule> composition_rules();  // causes by what the peak consists of
std::span<const CauseRule> fragmentation_rules();
std::span<const CauseRule> outside_rules();
std::span<const CauseRule> cap_rules();
std::span<const CauseRule> leak_rules();
std::span<const CauseRule> step_rules();
std::span<const CauseRule> devices_rules();
std::span<const CauseRule> host_rules();
std::span<const CauseRule> not_memory_rules();

// Returns every rule there is, each id once.
std::vector<CauseRule> all_rules();

// Returns the causes that the rules find, most probable first: at most six, each with a confidence of at least 0.05.
// For a message the confidences add up to at most 1, since each is the probability that the cause alone made the
// request fail.
std::vector<Cause> causes_of(const Evidence& evidence);

}  // namespace ullage::diagnose
