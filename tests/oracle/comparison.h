// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two runs of one case held against each other, event for event, then the totals.

#include "runs.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::oracle {

// None: they are equal. Else several lines: the case, the first event that differs with what stands around it in both,
// and the operation during which it came.
std::optional<std::string> difference(const Case& one, const std::vector<Operation>& operations, const Run& real,
                                      const Run& model);

std::string text(const Case& one);
std::string text(const Operation& operation);
std::string text(const SeenEvent& event);

}  // namespace ullage::oracle
