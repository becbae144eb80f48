// SPDX-License-Identifier: Apache-2.0
#pragma once

// Removes the ops that only prepare inputs: a sampler's draws, transforms of single samples, collation, cutting a
// corpus into rows. They are the ops that read and write nothing that follows from a parameter and that have no
// threshold (thresholds.h). Their number often follows from the sizes in a way that no law describes, and they seldom
// matter for the peak.
//
//   batch 16   randint          empty stack   conv ...        a sampler draws 32 indices at once:
//   batch 32   randint randint  empty stack   conv ...        every second batch of 16, every batch of 32
//
// Their bytes are put back as storages of no op. The sizes of these follow a law that is at or above the bytes of each
// take:
//   - a storage that lives while other ops run counts for as long as it lives;
//   - a storage that is freed before the next op that stays counts at that op;
//   - at some places of the steps, some takes may hold such bytes and others none. Then each take's largest sum of them
//     at one place counts at every place of the steps.
// A storage that other ops use stays as it is.

#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace ullage::predict {

struct InputWork {
  trace::TraceFile file;     // without those ops
  std::vector<bool> inputs;  // index: StorageId of take 0. Made by one of those ops and used by another op
};

// LeftOut: without such storages, for a comparison that only asks where the takes differ.
enum class HeldByThem { PutBack, LeftOut };

// `order` as in Sequence. Nothing if no take has such ops, or if a take has no parameter, because inputs cannot be
// recognised then.
std::optional<InputWork> without_input_work(const trace::TraceFile& file, const Grid& grid,
                                            const std::vector<std::size_t>& order,
                                            HeldByThem what = HeldByThem::PutBack);

}  // namespace ullage::predict
