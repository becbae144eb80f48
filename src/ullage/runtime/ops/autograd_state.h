// SPDX-License-Identifier: Apache-2.0
#pragma once

// Says what autograd is doing on this thread, for the recorder and the follower of a plan, which ask at each op. Each
// call takes a few nanoseconds.

#include "ullage/runtime/ops/torch_compat.h"

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ullage::runtime {

// Returns a number for the thread of the program whose work runs here. Backward of a card's tensors runs on threads of
// the autograd engine, but counts as work of the program's thread that waits for it. The runtime cannot see which one
// waits. It assumes the one that had last called this with `in_op` when the pass began here. `in_op`: an op runs on
// this thread now.
std::uint32_t thread_of_work(bool in_op);

// Does a backward pass run on this thread?
bool in_backward();
// Are ops recorded for a backward pass now, one by one or as a whole?
bool grad_mode();
// Call it on entry and exit of code that runs without grad mode and that autograd records as a whole: the forward graph
// of a compiled region. Calls nest.
void recorded_as_a_whole(bool enters);
// The name of the node of the autograd graph that runs here, "ConvolutionBackward0"; for each node that is written in
// Python, "a function of Python". Empty outside backward. The text lives for ever.
std::string_view node_being_run();

// Is it a leaf that requires grad, which an optimizer would train?
bool is_trained_leaf(const c10::TensorImpl& tensor);

// May ops use oneDNN's kernels, by the program's setting now?
bool uses_onednn();

// The version of torch that the runtime was compiled against: "2.13.0".
std::string torch_version();

}  // namespace ullage::runtime
