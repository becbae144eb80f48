// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes below which no plan exists. The op that needs most at once sets them, together with all storages that
// cannot be moved.

#include "ullage/plan/problem/problem.h"

#include <string>

namespace ullage::plan {

struct Floor {
  Bytes bytes;
  std::string set_by;  // "aten::convolution_backward net.3 (backward)"
};
// The floor holds for the levers that `problem` was made with; more levers may lower it.
Floor floor_of(const Problem& problem);

// Describes an op for a person: its name, the layer or tensor that it works on if that is known, and its phase.
std::string described(const Step& step, OpIndex op);

}  // namespace ullage::plan
