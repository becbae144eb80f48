// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes by how much the peak of live bytes would fall if some storages were smaller, or did not exist. It looks at
// the whole recording, because another moment may become the peak once the first is lowered. Remedies get their figures
// here.

#include "ullage/diagnose/history.h"

#include <cstdint>

namespace ullage::diagnose {

// The fraction of its bytes that a storage would lose: numerator / denominator, from 0 to 1. Each storage's loss is
// rounded down. By default it loses all.
struct Part {
  std::uint64_t numerator = 1;
  std::uint64_t denominator = 1;
};

// Returns by how many bytes the peak falls if all storages of a category, or of a role, lose `part`; zero if it does
// not. The peak is the highest level of the whole recording. If a request failed at the moment that is diagnosed
// (History::moment), only the recording up to that moment counts. The level at that moment includes the refused bytes.
Bytes saving(const History& history, trace::Category category, Part part = {});
Bytes saving(const History& history, Role role, Part part = {});

}  // namespace ullage::diagnose
