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
// take. (A kept op is one that is not removed.)
//   - A storage that lives while a kept op runs counts for as long as it lives.
//   - A storage that is freed before the next kept op begins counts at that op.
//   - From the first backward pass on, some takes may hold storages of the second kind at an op where others hold none.
//     Then each take's largest sum of them at such an op counts at every kept op from there on.
// A storage that a kept op uses stays as it is.

#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace ullage::predict {

struct InputWork {
  trace::TraceFile file;  // without those ops
  // Index: StorageId of take 0. True: made by a removed op, or while no op ran, and used by a kept op.
  std::vector<bool> inputs;
};

// Whether the bytes of the removed ops are put back. LeftOut: for a comparison that only asks where the takes differ.
enum class HeldByThem { PutBack, LeftOut };

// `order` as in Sequence. Nothing if no take has such ops, or if a take has no parameter, because inputs cannot be
// recognised then.
std::optional<InputWork> without_input_work(const trace::TraceFile& file, const Grid& grid,
                                            const std::vector<std::size_t>& order,
                                            HeldByThem what = HeldByThem::PutBack);

}  // namespace ullage::predict
