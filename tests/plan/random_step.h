// SPDX-License-Identifier: Apache-2.0
#pragma once

// Steps as programs that train have them, at random: forward with in-place ops, storages read by many, several results,
// dropout, batch norms, hidden storages, ops that cannot be run again, bytes that come with no op; backward with deep
// reads of what was saved; optimizers that write parameters and their state; gradients that the next step frees.

#include "ullage/plan/model/step.h"

#include <cstddef>
#include <cstdint>

namespace ullage::plan::test {

// About `ops` ops, 12 or more. The same for the same numbers on every machine.
Step random_step(std::uint64_t seed, std::size_t ops);

}  // namespace ullage::plan::test
