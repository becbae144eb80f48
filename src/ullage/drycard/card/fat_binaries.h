// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which compute capabilities the kernels of a program were compiled for. A card runs the newest code that is not newer
// than itself, and libraries (cub) choose their launches by what that is: on a card of 8.9 torch's kernels for 8.6 run.

#include <optional>

namespace ullage::drycard {

// `wrapper` is what __cudaRegisterFatBinary is given. Returns the handle of the module, which lives for ever.
void** register_fat_binary(const void* wrapper);
// `function` is the host's function that stands for a kernel of that module.
void register_function(void** module, const void* function);

// The capability, 86 for 8.6, of the code that a card of capability `card` runs of `function`. Of a function that is
// not known, or whose module cannot be read: the card's own. None: its module has no code for such a card.
std::optional<int> code_for(const void* function, int card);

}  // namespace ullage::drycard
