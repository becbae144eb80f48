// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a CUDA run of a program asks for other memory than its CPU run: one table, each row with its source. Nothing here
// was compared with a card yet, so a prediction made with it says that it is not calibrated.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace ullage::predict {

enum class CudaEffect : std::uint8_t {
  RemoveWithin,   // blocks born and freed within one run of such an op: scratch of a CPU kernel
  RemoveNumbers,  // of these those of at most `bytes`
  RemoveVarying,  // of these those that varying_scratch() speaks of
  AddForThread,  // `bytes` at the first such op of each thread, kept for good; `large_card` on a card of 70 GiB or more
  AddWithin,     // `bytes` while such an op runs
  HoldInLists,   // temporaries of one call of an optimizer live until it ends, those of `ops` are done in place
  AddToProcess,  // `bytes` outside the allocator
  Unknown,       // there is more, and nobody knows how much: a row of no bytes
};

struct CudaRule {
  CudaEffect effect;
  std::string_view ops;  // names without overloads, with spaces between; "*": all
  Bytes bytes;
  Bytes large_card;
  std::string_view row;     // its name in Cuda::rows; empty: it removes
  std::string_view says;    // for people
  std::string_view source;  // a file of torch, or where it was measured
};

std::span<const CudaRule> cuda_rules();

}  // namespace ullage::predict
