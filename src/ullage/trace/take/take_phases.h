// SPDX-License-Identifier: Apache-2.0
#pragma once

// The phase of every op of a take, and which ops make up a call of an optimizer. The first row that applies decides.
// Rows that compare an op with the ops before and after it look at the ops of one thread.
//
//   backward     autograd's engine runs it
//   loading      before the first forward pass (TakeIndex::first_forward)
//   optimizer    one of:
//                - between the first and the last update of parameters, with no backward pass and no save in between
//                - right before the first update, back to the last op of another phase than optimizer or evaluation:
//                  clipping, making state
//                - right after the last update: ops without grad mode, up to the last one that writes to a storage from
//                  before the first forward pass and makes none (averages of the weights)
//                - anywhere, if it uses a gradient (zero_grad)
//   evaluation   grad mode is off
//   forward      the rest

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/take/take_index.h"

#include <cstdint>
#include <vector>

namespace ullage::trace {

struct TakePhases {
  static constexpr std::uint32_t kNoCall = UINT32_MAX;

  std::vector<Phase> ops;  // index: OpId
  // Index: EventId. The phase of the op around the event, else of the op before; for an allocation, of the op after.
  std::vector<Phase> events;
  // Index: OpId. The number of the optimizer's call for ops from its first update to its last, else kNoCall.
  std::vector<std::uint32_t> call;
};
TakePhases take_phases(const TakeIndex& index);

}  // namespace ullage::trace
