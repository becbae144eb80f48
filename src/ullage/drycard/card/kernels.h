// SPDX-License-Identifier: Apache-2.0
#pragma once

// The answers to questions about kernels. A kernel's code is not read, so every kernel has the same plain figures:
// kRegistersOfKernel registers and no shared memory of its own. These figures matter because some kernels take scratch
// by how many blocks fit on a multiprocessor.

#include "ullage/drycard/card/abi.h"

namespace ullage::drycard {

inline constexpr int kRegistersOfKernel = 32;
inline constexpr int kBlocksOfCluster = 8;  // the most that every card with clusters supports

FunctionAttributes plain_kernel();
// Returns how many blocks of `threads` threads and `shared` bytes of dynamic shared memory fit on one multiprocessor of
// the current card.
int blocks_per_multiprocessor(int threads, std::size_t shared);

}  // namespace ullage::drycard
