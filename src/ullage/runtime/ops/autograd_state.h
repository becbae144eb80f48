// SPDX-License-Identifier: Apache-2.0
#pragma once

// What autograd is doing on this thread. Each answer costs a few nanoseconds.

#include "ullage/runtime/ops/torch_compat.h"

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ullage::runtime {

// A number for the thread whose work it is that runs here. Backward of a card's tensors runs on threads of the engine's
// own while the thread that asked for it waits: that is its work. `in_op`: an op runs here, now.
std::uint32_t thread_of_work(bool in_op);

// Inside the engine: a backward pass runs here.
bool in_backward();
// What runs now is recorded for a backward pass.
bool grad_mode();
// The node of the graph that runs here, "ConvolutionBackward0"; empty outside backward. Lives for ever.
std::string_view node_being_run();

// A leaf that requires grad: what an optimizer would train.
bool is_trained_leaf(const c10::TensorImpl& tensor);

// Ops may take oneDNN's kernels, as the program has set it now.
bool uses_onednn();

// "2.13.0", of the library.
std::string torch_version();

}  // namespace ullage::runtime
