// SPDX-License-Identifier: Apache-2.0
#pragma once

// The budget of a card, from before torch begins to use it: the allocator before PyTorch's is put in as the process
// starts, and the session begins when something is allocated on the card for the first time. Then the card's context
// is there and can be counted, and a process that never uses the card is left alone.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/runtime/session.h"

#include <functional>
#include <string>

namespace ullage::runtime {

struct CardSettings {
  int card = 0;
  Bytes host_memory;                 // most bytes of locked host memory that what leaves the card may take
  Bytes least = plan::kLeastOnCard;  // smaller requests are PyTorch's
  // Of the session; a budget of zero: what the card has free by then, less 5 %. Told through `begun`.
  Session::Settings session;
  std::function<void(Bytes budget)> begun;
  std::function<void(const Error&)> failed;  // the session cannot begin: the budget cannot hold; does not return
  // The libraries of torch's CUDA part and of the driver; tests have others.
  std::string allocator_library, driver_library;
};

// NotFound: this torch has no CUDA part, or Ullage was built without it. Once in a process.
Status await_card(CardSettings settings);

}  // namespace ullage::runtime
