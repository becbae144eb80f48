// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is said of a kernel. Its code is not read, so every kernel is a plain one: that many registers, no shared memory
// of its own. Scratch of some kernels follows from how many blocks fit on a multiprocessor.

#include "ullage/drycard/card/abi.h"

namespace ullage::drycard {

inline constexpr int kRegistersOfKernel = 32;
inline constexpr int kBlocksOfCluster = 8;  // the most that every card with clusters takes

FunctionAttributes plain_kernel();
int blocks_per_multiprocessor(int threads, std::size_t shared);

}  // namespace ullage::drycard
