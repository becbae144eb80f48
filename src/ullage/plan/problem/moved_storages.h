// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the storages that a search looks at.

#include "ullage/plan/problem/recompute_ways.h"

namespace ullage::plan {

// Marks the storages worth searching: those that could be evicted in a hot op, in which the plain step has too many
// bytes. Also marks the storages that their recomputes read and make, if an op of the step made them. If a storage is
// left to the next step under another name (StepFacts::carried_to), both names are marked.
Table<StorageIndex, bool> moved_storages(const RecomputeWays& ways, const HotOps& hot);

}  // namespace ullage::plan
