// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds what can be recomputed in a step: fills in StepOp::recompute, batch_norm and unread, by the rules of
// recompute_rules.h and arguments.h.

#include "ullage/plan/model/recompute_rules.h"
#include "ullage/plan/model/step_builder.h"

namespace ullage::plan {

// An op gets a `recompute` if recompute_rules.h knows it and it is of the forward pass. It must not have failed or been
// cut into slices, and it must make something. But it gets none if it
//   hides a storage that its own thread made (StepOp::hides);
//   writes into results that the caller gave;
//   overwrites a value that no op of the step made, because nothing could bring that back;
//   reads what changes unseen: what ops of other threads write, or running statistics of another batch norm;
//   gets tensors that are not recorded and that may change without any op (all_arguments_seen());
//   makes blank memory (RecomputeRule::Blank), unless an op overwrites all of it before any op reads it.
// A batch norm is recomputed only if it trains. It runs without its running statistics, so these are not among its
// reads. If not all five arguments were recorded, it is not certain which those are, and all stay among its reads.
//
// A batch norm of the forward pass that trains and reads nothing that changes unseen gets a `batch_norm`, which costs
// kBatchNormShare of the op's time.
void add_recomputes(const trace::TakeIndex& index, Kernels kernels, BuiltStep& built);

// Measured: 0.2 to 0.33 of the op, on two cores. The op reads its input three times and writes; this reads once and
// writes, which is half the bytes or less.
inline constexpr double kBatchNormShare = 0.25;

}  // namespace ullage::plan
