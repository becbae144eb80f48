// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ullage/trace/take/take.h"

#include <vector>

namespace ullage::predict {

// Removes the marked ops (index: OpId) from the take. Storages that they made then count as made by no op. Their births
// and deaths stay.
void remove_ops(trace::Take& take, std::vector<bool> ops);

}  // namespace ullage::predict
