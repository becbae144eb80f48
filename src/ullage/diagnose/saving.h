// SPDX-License-Identifier: Apache-2.0
#pragma once

// By how much the peak of live bytes would fall if some storages were smaller or not there: the whole recording is
// looked at, because another moment becomes the peak when the first one is lowered.

#include "ullage/diagnose/history.h"

#include <cstdint>

namespace ullage::diagnose {

// What part of its bytes a storage would lose: numerator / denominator.
struct Part {
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;
};

// Storages of a category, or those of a role, lose `part`. The peak is that of the whole recording; of a failure it is
// the highest level up to it, the refused request included.
Bytes saving(const History& history, trace::Category category, Part part = {});
Bytes saving(const History& history, Role role, Part part = {});

}  // namespace ullage::diagnose
