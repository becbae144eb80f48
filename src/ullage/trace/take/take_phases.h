// SPDX-License-Identifier: Apache-2.0
#pragma once

// The phase of every op of a take, and which calls of optimizers they make.
//
//   loading      before the first op that autograd keeps something for
//   backward     run by autograd's engine
//   optimizer    from the first update of a parameter to the last, with no backward pass and nothing saved in between;
//                before the first: what ran without grad mode, or on gradients, since the backward pass (the making of
//                state, clipping); after the last: what writes, without grad mode, to something that stays (averages of
//                the weights); elsewhere what reads or writes gradients (zero_grad)
//   evaluation   without grad mode
//   forward      the rest

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/take/take_index.h"

#include <cstdint>
#include <vector>

namespace ullage::trace {

struct TakePhases {
  static constexpr std::uint32_t kNoCall = UINT32_MAX;

  std::vector<Phase> ops;  // index: OpId
  // Index: EventId. That of the op it stands in; outside ops that of the op before, of allocations of the op after.
  std::vector<Phase> events;
  // Index: OpId. Of the ops from the first update of a parameter to the last: the number of that call of an optimizer.
  std::vector<std::uint32_t> call;
};
TakePhases take_phases(const TakeIndex& index);

}  // namespace ullage::trace
