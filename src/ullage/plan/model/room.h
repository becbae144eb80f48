// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much of a pool's limit a plan may fill.

#include "ullage/store/slabs.h"

namespace ullage::plan {

// Of a limit, what is left free: for what is outside the pool and grows, one part in two hundred; and a slab, since
// small blocks are not as neatly together as in the model.
inline Bytes kept_back(Bytes limit) { return limit / 200 + store::Slabs::kSlab; }

// What a run that follows a plan may hold more outside the pool than the one that was recorded. Seen: up to 2.3 MiB, in
// random programs beside others that kept the disk busy.
inline constexpr Bytes kOutsideAllowance = 4_MiB;

}  // namespace ullage::plan
