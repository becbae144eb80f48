// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small parts that the shipped programs share.

#include "program/progress.h"
#include "program/sha256.h"
#include "ullage/base/bytes.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace ullage::torch_program {

// An image::ChargeMemory. The budget keeps `bytes` free while the returned object lives (runtime.h).
std::shared_ptr<void> charge(Bytes bytes, std::string_view what);

// Returns a random seed below 10^9, short enough to type.
std::uint64_t seed_by_chance();

// Sets the threads of torch's ops; 0: leaves them as they are.
void set_threads(std::int64_t threads);

// The end of a progress line: what this process holds now, and the time that is left.
program::Pace pace(Seconds left);

// Adds the tensor's values to the digest, in logical order whatever its layout.
void add(program::Sha256& digest, const at::Tensor& tensor);

}  // namespace ullage::torch_program
