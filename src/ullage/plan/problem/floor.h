// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes below which no plan exists: the op that needs most at once, with what cannot be moved.

#include "ullage/plan/problem/problem.h"

#include <string>

namespace ullage::plan {

struct Floor {
  Bytes bytes;
  std::string set_by;  // "aten::convolution_backward net.3 (backward)"
};
// With levers that leave it more room it may be lower: `problem` is of the levers asked for.
Floor floor_of(const Problem& problem);

// An op for a person: its name, the layer or tensor that it works on where that is known, and the phase.
std::string described(const Step& step, OpIndex op);

}  // namespace ullage::plan
