// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which storages of a step a search need look at.

#include "ullage/plan/problem/recompute_ways.h"

namespace ullage::plan {

// Of each storage: can it be away while plain execution has too many bytes, or is something made from it that can?
Table<StorageIndex, bool> moved_storages(const RecomputeWays& ways, const HotOps& hot);

}  // namespace ullage::plan
