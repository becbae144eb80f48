// SPDX-License-Identifier: Apache-2.0
#pragma once

// The facts about a device that matter to the planner: its kernels, the smallest storage that a plan can move, and the
// smallest that the pool holds.

#include "ullage/base/bytes.h"
#include "ullage/plan/model/recompute_rules.h"
#include "ullage/store/store.h"

#include <string_view>

namespace ullage::plan {

struct StandsOn {
  Kernels kernels = Kernels::Processor;
  Bytes least_movable = store::Store::kLeastRange;  // smaller storages have no pages of their own
  Bytes least_in_pool{};  // smaller storages come from another allocator, outside the pool, and count as no bytes
};

// On a card this pool serves requests of this size and more; smaller ones go to PyTorch's caching allocator. A page of
// a card is 2 MiB. So rounding up loses less than half of the pages of any request; docs/gpu.md compares other borders.
inline constexpr Bytes kLeastOnCard = 2_MiB;

// `device` as trace files name it: "cpu" or "cuda:0".
inline StandsOn stands_on(std::string_view device) {
  return device == "cpu" ? StandsOn{} : StandsOn{Kernels::Card, kLeastOnCard, kLeastOnCard};
}

}  // namespace ullage::plan
