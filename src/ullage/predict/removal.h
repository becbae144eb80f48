// SPDX-License-Identifier: Apache-2.0
#pragma once

// Removes ops from a take. Two comparisons need it: the one without ops that only prepare inputs (input_work.h), and
// the one without ops of worker threads (worker_ops.h).

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <vector>

namespace ullage::predict {

// Removes the marked ops (index: OpId) from the take. Storages that they made then count as made by no op. Their births
// and deaths stay.
void remove_ops(trace::Take& take, std::vector<bool> ops);

// Replaces every event number in the take's storages, ops and notes by its new one. `numbers`: by old number, and one
// more for the end. The list of events itself stays as it is.
void renumber_events(trace::Take& take, const std::vector<std::uint64_t>& numbers);

}  // namespace ullage::predict
