// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_allocator.cpp in builds against a torch without CUDA.
#include "ullage/runtime/card/card_seam.h"

extern "C" ullage::runtime::CardAllocator* ullage_put_before_cuda(ullage::runtime::CardMemory&);

ullage::runtime::CardAllocator* ullage_put_before_cuda(ullage::runtime::CardMemory&) { return nullptr; }
