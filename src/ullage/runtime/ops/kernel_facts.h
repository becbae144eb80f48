// SPDX-License-Identifier: Apache-2.0
#pragma once

// Probes facts about this build of torch on this machine, with small tensors. Each fact allows plans one thing (below).
// If it does not hold, plans do without that thing. Add a fact here if plans come to rely on another property of
// kernels.

namespace ullage::runtime {

struct KernelFacts {
  // TapedOp::recompute_batch_norm() makes a batch norm's output again with the same bits, so plans may do so (the lever
  // `batch-norm`). Tried in float32, with eight shapes, contiguous and channels-last.
  bool recomputes_batch_norm = false;
  // The backward pass of a convolution whose weight gets no gradient does not look at the convolution's input, so the
  // input may stay evicted there.
  bool convolution_input_unread = false;
};

// Takes some milliseconds and draws from no generator. Its ops are in no recording and no plan (UnseenOps). Call it on
// a thread that has none of the program's modes, such as autocast: on a new one, or when the process starts. If the
// probe itself fails, for example for lack of memory, both facts are false. The result is not cached.
KernelFacts probe_kernels();

}  // namespace ullage::runtime
