// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads from the call stack which op of torch this thread is running. This costs nothing until somebody asks: the name
// is wanted for the message of a refused request. If ops are intercepted on this thread, Interceptor::current() is more
// exact.

#include <string>
#include <string_view>

namespace ullage::runtime {

// Returns the innermost op on the stack (a function at::_ops::NAME), for example "aten::convolution_backward". Skips
// ops whose names begin with empty, new_empty or resize_, unless there are no others: torch.zeros gives "aten::zeros".
// Outside of any op, returns kOutsideOps. Names come from torch's exported symbols, which a stripped library has too.
// An overload's name follows after an underscore, as in "aten::add_Tensor", because torch names its functions so. Looks
// at 256 frames at most.
std::string op_on_the_stack();
inline constexpr std::string_view kOutsideOps = "code outside of any op";

}  // namespace ullage::runtime
