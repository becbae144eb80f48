// SPDX-License-Identifier: Apache-2.0
#pragma once

// What each storage was for, where its stack alone cannot tell: by when it died. Of what the backward pass makes the
// gradients stay and the rest dies in it; of what an optimizer makes its state stays. What was there before the history
// and has no stack is a parameter where a gradient (or optimizer state) of exactly its size was made for it.

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/trace.h"

#include <vector>

namespace ullage::trace {

// Index: StorageId.
//   stack says       storage                                              is
//   backward         died in a backward pass                              temporary
//                    lives on                                             gradient
//   optimizer        died in that call of the optimizer                   temporary
//                    lives on                                             optimizer state
//   nothing          died in a backward pass (the graph held it)          activation
//   no stack         from before, never freed, size of a gradient         parameter, one for each gradient
//                    from before, freed by an optimizer, likewise         gradient
//   anything else    any                                                  as its stack says
// Of a recording of Ullage's own (StackMeaning::certain) all is as the stacks say.
std::vector<Category> categories(const Trace& trace, const std::vector<StackMeaning>& meanings);

}  // namespace ullage::trace
