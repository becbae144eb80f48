// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the op of torch that runs on this thread from the call stack, so that it costs nothing until someone asks. If
// the interceptor is armed, Interceptor::current() is more exact.

#include <string>
#include <string_view>

namespace ullage::runtime {

// Returns, for example, "aten::convolution_backward": the innermost at::_ops::NAME on the stack that does more than
// make or resize a tensor. If there is none, returns the op that makes the tensor; outside of any op, kOutsideOps. An
// overload's name follows after an underscore, as in "aten::add_Tensor", because torch names its functions so.
std::string op_on_the_stack();
inline constexpr std::string_view kOutsideOps = "code outside of any op";

}  // namespace ullage::runtime
