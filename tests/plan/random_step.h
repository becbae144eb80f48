// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random training steps. The forward pass has in-place ops, storages with many readers, ops with several results,
// dropout and batch norms. It also has hidden storages, ops that cannot be recomputed, and storages made outside of
// ops. The backward pass reads saved tensors from far back. Optimizers write parameters and their state. The next step
// frees the gradients.

#include "ullage/plan/model/step.h"

#include <cstddef>
#include <cstdint>

namespace ullage::plan::test {

// Makes a step of about `ops` ops (12 or more). The same arguments give the same step on every machine.
Step random_step(std::uint64_t seed, std::size_t ops);

}  // namespace ullage::plan::test
