// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much of a pool's limit a plan leaves free, so that a run can follow it.

#include "ullage/store/slabs.h"

namespace ullage::plan {

// Returns the bytes that a plan leaves free below the pool's limit. Half a percent is for growth outside the pool. One
// slab is added because small storages are packed less densely than in the model.
inline Bytes kept_back(Bytes limit) { return limit / 200 + store::Slabs::kSlab; }

// How much more a run that follows a plan may hold outside the pool than the recorded run. Measured: up to 2.3 MiB, in
// random programs while other programs kept the disk busy.
inline constexpr Bytes kOutsideAllowance = 4_MiB;

}  // namespace ullage::plan
