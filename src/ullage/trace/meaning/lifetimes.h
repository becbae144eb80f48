// SPDX-License-Identifier: Apache-2.0
#pragma once

// The category of each storage, from its stack and from when it died. Tensors made in a backward pass are gradients if
// they stay, and temporaries if they die in it. Tensors made in an optimizer are its state if they stay. A storage
// without a stack, from before the first event, counts as a parameter if a gradient or optimizer state of exactly its
// size is made later.

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/trace.h"

#include <vector>

namespace ullage::trace {

// Index: StorageId.
//   stack says       storage                                              is
//   backward         died in a backward pass                              temporary
//                    lives on                                             gradient
//   optimizer        died in the same call of the optimizer               temporary
//                    lives on, a parameter of its size is freed next      parameter (hand_over() in lifetimes.cpp)
//                    lives on                                             optimizer state
//   nothing          died in a backward pass (the graph held it)          activation (also if it has no stack)
//   no stack         from before, never freed, size of a gradient or of   parameter, one for each gradient or
//                    optimizer state                                      state of that size
//                    from before, freed by an optimizer that has just     optimizer state; of three for each
//                    made state of its size                               gradient one is the parameter
//                    from before, freed by an optimizer, size of a        gradient
//                    gradient
//   autocast's cast  half the size of a parameter, or of a block that     weight copy
//                    may be one, one for each
//   activation,      freed where autocast ends                            weight copy
//   temporary or nothing
//   anything else    any                                                  as its stack says
// A storage without a stack that is made in a backward pass counts as if its stack said so.
// In the trace of a take (StackMeaning::certain) every storage is what its stack says.
std::vector<Category> categories(const Trace& trace, const std::vector<StackMeaning>& meanings);
// The same, for callers that have the phases() of the trace already.
std::vector<Category> categories(const Trace& trace, const std::vector<StackMeaning>& meanings,
                                 const std::vector<Phase>& by_event);

}  // namespace ullage::trace
