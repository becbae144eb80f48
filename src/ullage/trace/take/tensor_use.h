// SPDX-License-Identifier: Apache-2.0
#pragma once

// How large the tensor of a use is.

#include "ullage/trace/take/take.h"

namespace ullage::trace {

// Returns the bytes of the tensor's elements. Zero if the type has no fixed size (quantized types), if a size is not
// positive, or above 2^62.
Bytes bytes_of(const TensorUse& use);

}  // namespace ullage::trace
