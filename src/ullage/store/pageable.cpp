// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/pageable.h"

namespace ullage::store {
namespace {

constexpr std::uint64_t kSoon = 16;  // a storage that was used less than this many ops ago is needed soon again
constexpr std::uint64_t kFarAway = 1ull << 40;  // stands for "far away": more ops than any history has

}  // namespace

// The header has these four rules, in this order, and their reasons.
std::uint64_t distance(const Uses& uses, const UseHistory& history) {
  const std::uint64_t now = history.now().value;
  const auto next = history.next(uses.last_use);
  if (next && next->at.value >= now) return next->at.value - now + 1;
  if (uses.saves > 0) return now - uses.saved_at.value + 1;
  const std::uint64_t since = now - uses.used_at.value;
  return since < kSoon ? since + 1 : kFarAway - since;
}

}  // namespace ullage::store
