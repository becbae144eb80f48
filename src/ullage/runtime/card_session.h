// SPDX-License-Identifier: Apache-2.0
#pragma once

// Begins the budget of a card. When the process starts, an allocator is put in front of PyTorch's. The session begins
// with the first allocation on the card. By then the card's context exists and can be counted. A process that never
// uses the card is left alone.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/runtime/session.h"

#include <functional>
#include <string>

namespace ullage::runtime {

struct CardSettings {
  int card = 0;
  Bytes host_memory;                 // most bytes of locked host memory for tensors evicted from the card
  Bytes least = plan::kLeastOnCard;  // smaller requests go to PyTorch's allocator
  // A budget of zero means 95 % of a sum: the card's free bytes plus those that the process holds on it. Both are
  // measured when the session begins.
  Session::Settings session;
  std::function<void(Bytes budget)> begun;   // called with the budget just before the session begins; may be empty
  std::function<void(const Error&)> failed;  // called if the session cannot begin; must not return
  // libullage_cuda.so and the driver's library; tests have others.
  std::string allocator_library, driver_library;
};

// Puts the allocator in front of PyTorch's; call it once in a process. NotFound: this torch has no CUDA part, or Ullage
// was built against a torch without one.
Status await_card(CardSettings settings);

}  // namespace ullage::runtime
