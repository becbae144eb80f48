// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small parts of a run that each of the shipped programs has.

#include "program/sha256.h"
#include "ullage/base/bytes.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace ullage::torch_program {

// An image::ChargeMemory: the budget keeps that much free while what is returned lives (runtime.h).
std::shared_ptr<void> charge(Bytes bytes, std::string_view what);

// A seed that a person can type again.
std::uint64_t seed_by_chance();

// The tensor's figures, in order whatever its layout.
void add(program::Sha256& digest, const at::Tensor& tensor);

}  // namespace ullage::torch_program
