// SPDX-License-Identifier: Apache-2.0
#pragma once

// Probes facts about this build of torch on this machine, with small tensors, before a plan may rely on them.

namespace ullage::runtime {

struct KernelFacts {
  // TapedOp::recompute_batch_norm() gives a batch norm's output bit by bit, in all layouts tried.
  bool recomputes_batch_norm = false;
  // The backward pass of a convolution whose weight gets no gradient does not look at the convolution's input.
  bool convolution_input_unread = false;
};

// Takes some milliseconds and draws from no generator. If the probe itself fails (no room), both facts are false.
KernelFacts probe_kernels();

}  // namespace ullage::runtime
