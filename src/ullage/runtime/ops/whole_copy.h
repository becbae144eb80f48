// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises the calls of `copy_` that copy one whole storage over another, byte by byte. load_state_dict() makes such
// a call for each parameter. With little room the pager copies the bytes itself, without both storages in memory
// (Pager::copy_storage()).

#include "ullage/runtime/ops/op_call.h"

#include <optional>

namespace ullage::runtime {

// `call` is one of aten::copy_. Returns nothing if the kernel would do more than to copy bytes, or if autograd or
// forward-mode differentiation would note where they come from.
std::optional<WholeCopy> whole_copy_of(const OpCall& call);

// Once the bytes are there: has the kernel copy the tensor to itself, for which it touches no byte. All else that
// `copy_` does is done, such as counting the tensor's version. `arguments` are those of `copy_`.
void copy_to_itself(std::span<c10::IValue> arguments);

}  // namespace ullage::runtime
