// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes takes comparable that do not do the same: of each it keeps what all of them do, and counts the rest as bytes.
//
//   batch 2   embedding  mm  nonzero  index  index         add      common: embedding  mm  nonzero  index  index  add
//   batch 3   embedding  mm  nonzero  index  index  index  add      the rest: what the third "index" makes
//
// The common ops are a longest common sequence. Storages correspond if the same op makes them at the same place. A
// common storage dies where it dies latest. What a take holds beyond these is the rest: one block stands for it, which
// is replaced wherever the rest changes between two begins or ends of common ops.
//
// Bytes that follow no law over the takes are raised until they follow one: a line as steep as the steepest rise if
// they grow from take to take, else in proportion to the knobs (to their square if a knob may be a side or a length).
// So what the new takes predict is a bound if nothing that follows no law grows faster than that.

#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace ullage::predict {

struct CommonPart {
  trace::TraceFile file;  // all takes do the same
  std::size_t ops = 0;    // how many ops are common
  std::size_t rest = 0;   // how many more ops the take with the most has
  // Index: StorageId. True: some take has fewer bytes than its new take, because they followed no law.
  std::vector<bool> raised;
};

// `order` as in Sequence, `at`: the target's knobs, by axis of the grid. At each place a new take holds at least as
// much as the take that it stands for. Nothing if the takes differ too much: borders or charges in other numbers, lost
// events, or 5,000 ops that not all have. Also if the peak of a new take is higher by more than a tenth.
std::optional<CommonPart> common_part(const trace::TraceFile& file, const Grid& grid,
                                      const std::vector<std::size_t>& order, const std::vector<std::int64_t>& at);

}  // namespace ullage::predict
