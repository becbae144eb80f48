// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place the larger bytes of a card come from: PyTorch's interface of a CUDA allocator over the pager and its store.
// Smaller requests, those of CUDA graphs and of private pools, and libraries' own stay with the allocator that was
// there before, which is given room when it finds none.
//
// Compiled into libullage_cuda.so, which is only loaded where libc10_cuda is; no header of CUDA is seen here.

#include "ullage/base/result.h"
#include "ullage/store/pager.h"

#include <functional>
#include <string>

namespace ullage::runtime {

struct CardPoolSettings {
  int device = 0;
  // Smaller requests go to the allocator before. A page of a card is 2 MiB, so that of a request of this size at most a
  // third is lost.
  Bytes least = Bytes{4} * (1 << 20);
  // The allocator before could not have `bytes`: gives so much of the card back to the driver. False: there is nothing
  // left to give.
  std::function<bool(Bytes bytes)> give_way;
  // What the error says that the program gets.
  std::function<std::string(const store::Shortage&)> message;
};

// Becomes PyTorch's CUDA allocator, for good; blocks of the one before go back to it. Once in a process, after CUDA was
// initialised. `pager` must live for ever, over a store on the same device. System: this build knows no CUDA.
Status install_card_pool(store::Pager& pager, CardPoolSettings settings);

}  // namespace ullage::runtime
