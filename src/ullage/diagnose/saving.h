// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes by how much the peak of live bytes would fall if some storages were smaller or not there. It looks at the
// whole recording, because another moment may become the peak once the first is lowered.

#include "ullage/diagnose/history.h"

#include <cstdint>

namespace ullage::diagnose {

// The part of its bytes that a storage would lose: numerator / denominator.
struct Part {
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;
};

// Returns by how many bytes the peak falls if all storages of a category, or of a role, lose `part`. The peak is that
// of the whole recording. If the moment is a failure, it is the highest level up to the failure, with the refused
// request added.
Bytes saving(const History& history, trace::Category category, Part part = {});
Bytes saving(const History& history, Role role, Part part = {});

}  // namespace ullage::diagnose
