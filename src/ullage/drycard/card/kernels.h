// SPDX-License-Identifier: Apache-2.0
#pragma once

// Launches of kernels, and the answers to questions about kernels. The answers do not come from a kernel's code, except
// for its compute capability (fat_binaries.h). So every kernel has the same figures: kRegistersOfKernel registers and
// no shared memory of its own. These figures matter because some kernels take scratch by how many blocks fit on a
// multiprocessor.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/fat_binaries.h"

namespace ullage::drycard {

inline constexpr int kRegistersOfKernel = 32;
inline constexpr int kBlocksOfCluster = 8;  // the most that every card with clusters supports

// Gives the card a kernel, counts its code if this is its first launch, and counts the launch if its arguments cannot
// be looked at. `arguments`: a pointer to each; may be null. Call it only if checks_work().
void give_launch(const void* stream, KernelFacts& kernel, void* const* arguments);

FunctionAttributes plain_kernel();
// Returns how many blocks of `threads` threads and `shared` bytes of dynamic shared memory fit on one multiprocessor of
// the current card.
int blocks_per_multiprocessor(int threads, std::size_t shared);

}  // namespace ullage::drycard
