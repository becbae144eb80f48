// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares two runs of one case: event by event, then the totals.

#include "runs.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::oracle {

// Returns nothing if the runs are equal. Otherwise returns several lines: the case, the first event that differs with
// its neighbours in both runs, and the operation during which it came.
std::optional<std::string> difference(const Case& one, const std::vector<Operation>& operations, const Run& real,
                                      const Run& model);

std::string text(const Case& one);
std::string text(const Operation& operation);
std::string text(const SeenEvent& event);

}  // namespace ullage::oracle
