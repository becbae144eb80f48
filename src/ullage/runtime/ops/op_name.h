// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which op of torch is running on this thread, found from the call stack: nothing is paid until someone asks. The
// interceptor, where it is armed, knows better.

#include <string>

namespace ullage::runtime {

// "aten::convolution_backward": the innermost at::_ops::NAME on the stack that is no mere factory of tensors, else the
// factory, else "no op" (a request that came from outside any op). An overload's name follows with an underscore, as in
// "aten::add_Tensor", because that is how torch names its functions.
std::string op_on_the_stack();

}  // namespace ullage::runtime
