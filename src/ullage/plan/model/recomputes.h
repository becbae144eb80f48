// SPDX-License-Identifier: Apache-2.0
#pragma once

// What of a step can be had again, and how: StepOp::recompute, batch_norm and unread, by the rules of
// recompute_rules.h.

#include "ullage/plan/model/recompute_rules.h"
#include "ullage/plan/model/step_builder.h"

namespace ullage::plan {

// Recompute: an op of the forward pass that recompute_rules.h knows, that ended, that was not cut into slices, that
// makes something, hides nothing of its own; not one that
//   overwrites a value that no op of the step made: nothing could bring that back;
//   reads what changes unseen: by other threads' ops, or by a batch norm, which says nothing of its statistics;
//   gets tensors that the recording does not know: somebody else may change them;
//   gives blank paper (RecomputeRule::Blank), unless another op writes over all of it before any looks at it.
// A batch norm is run again without its statistics, so it does not read them; only one that trains is.
//
// BatchNorm: of a batch norm that trains. kBatchNormShare of the op's time, until it is measured where it runs.
//
// Unread: by arguments.h.
void add_recomputes(const trace::TakeIndex& index, Kernels kernels, BuiltStep& built);

// Measured: 0.2 to 0.33 of the op, on two cores; it moves half the bytes or less (read, write, where the op reads the
// input three times).
inline constexpr double kBatchNormShare = 0.25;

}  // namespace ullage::plan
