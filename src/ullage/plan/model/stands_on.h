// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ullage/base/bytes.h"
#include "ullage/plan/model/recompute_rules.h"
#include "ullage/store/store.h"

#include <string_view>

namespace ullage::plan {

// Where the storages of a take stand, as far as a step differs by it.
struct StandsOn {
  Kernels kernels = Kernels::Processor;
  Bytes least_movable = store::Store::kLeastRange;  // smaller ones have no pages of their own
};

// A page of a card is 2 MiB: of a storage of this size at most a third is lost. Smaller ones are PyTorch's.
inline constexpr Bytes kLeastOnCard = 4_MiB;

// `device`: as recordings name it, "cpu" or "cuda:0".
inline StandsOn stands_on(std::string_view device) {
  return device == "cpu" ? StandsOn{} : StandsOn{Kernels::Card, kLeastOnCard};
}

}  // namespace ullage::plan
