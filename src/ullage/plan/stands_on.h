// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ullage/base/bytes.h"
#include "ullage/plan/rerun.h"
#include "ullage/store/store.h"

namespace ullage::plan {

// Where the storages of a take stand, as far as a step differs by it.
struct StandsOn {
  Kernels kernels = Kernels::Processor;
  Bytes least_movable = store::Store::kLeastRange;  // smaller ones have no pages of their own
};

}  // namespace ullage::plan
