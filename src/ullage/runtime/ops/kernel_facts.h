// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is true of this build of torch on this machine, tried out on small tensors before a plan may rest on it.

namespace ullage::runtime {

struct KernelFacts {
  // A batch norm's output is recomputed bit by bit by TapedOp::recompute_batch_norm(), in all layouts tried.
  bool recomputes_batch_norm = false;
  // The backward pass of a convolution whose weight gets no gradient does not look at its input.
  bool convolution_input_unread = false;
};

// Takes some milliseconds. The generator is left as it was.
KernelFacts probe_kernels();

}  // namespace ullage::runtime
