// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the compute capabilities that a program's kernels were compiled for. A card runs the newest code that is not
// newer than itself: a card of 8.9 runs torch's kernels for 8.6. Machine code must be of its generation (8), PTX need
// not. Libraries (cub) choose their launches by that.

#include "ullage/drycard/card/kernel_arguments.h"

#include <optional>

namespace ullage::drycard {

// `wrapper` is the argument of __cudaRegisterFatBinary; what it points to must never be freed. Returns the handle of
// the module, which is never freed either.
void** register_fat_binary(const void* wrapper);
// `function` is the host function that stands for a kernel of that module. `name` is the kernel's name; its text must
// never be freed.
void register_function(void** module, const void* function, const char* name);

// Returns the capability (86 for 8.6) of the code of `function` that a card of capability `card` runs. Returns `card`
// itself if the function is unknown or its module cannot be read. Returns nothing if the module has no code for such a
// card.
std::optional<int> code_for(const void* function, int card);

// The facts by which a launch of `function` can be checked.
struct KernelFacts {
  const char* name = "a kernel";
  ArgumentWords words;
  bool is_known = false;  // false: the kernel or its module's machine code could not be found or read
  std::size_t code = 0;   // bytes that a card loads for it
  bool is_new = true;     // it was not launched yet
};
// Returns the facts of `function` on a card of capability `card`. The first call for a function works them out; later
// calls ignore `card`. The reference stays valid; the caller must guard the object.
KernelFacts& kernel_facts(const void* function, int card);

}  // namespace ullage::drycard
