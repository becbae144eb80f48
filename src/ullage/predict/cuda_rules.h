// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the memory requests of a CUDA run differ from those of a CPU run: one table, each row with its source. No row has
// been compared with a card yet, so predictions made with the table say that they are not calibrated. When a card has
// been measured, correct the table's rows or add some.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace ullage::predict {

enum class CudaEffect : std::uint8_t {
  RemoveWithin,   // removes blocks born and freed within one such op: scratch of a CPU kernel
  RemoveNumbers,  // the same, but only blocks of at most `bytes`
  RemoveVarying,  // the same, but only blocks of at most varying_scratch() of the op (thresholds.h)
  // Adds `bytes` at the first such op of the forward thread and of autograd's thread, kept for good. On a card of 70
  // GiB or more adds `large_card` instead.
  AddForThread,
  AddWithin,  // adds `bytes` while such an op runs
  // Lets all temporaries of one call of an optimizer live until the call ends. Leaves out those that one of the `ops`
  // makes, because on a card that op works in place.
  HoldInLists,
  AddToProcess,  // adds `bytes` outside the allocator
  Unknown,       // adds a row of zero bytes: the card takes more there, and how much is not known
};

struct CudaRule {
  CudaEffect effect;
  std::string_view ops;  // names without overloads, separated by spaces; "*": all
  Bytes bytes;
  Bytes large_card;
  std::string_view row;     // the name in Cuda::rows; empty if the rule only removes or holds
  std::string_view says;    // for those who read this table; no answer shows it
  std::string_view source;  // a file of torch, or where it was measured
};

std::span<const CudaRule> cuda_rules();

}  // namespace ullage::predict
