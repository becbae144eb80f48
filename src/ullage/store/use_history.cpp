// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/use_history.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <utility>

namespace ullage::store {
namespace {

// A 64-bit mix (the finalizer of splitmix64).
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

const UseHistory::Op* UseHistory::op(OpId index) const {
  const std::uint64_t place = index.value - first_op_;
  return index.value >= first_op_ && place < ops_.size() ? &ops_[place] : nullptr;
}

const UseHistory::Use* UseHistory::use(UseId id) const {
  const std::uint64_t place = id.value - first_use_;
  return id.value >= first_use_ && place < uses_.size() ? &uses_[place] : nullptr;
}

std::uint64_t UseHistory::uses_of(OpId index) const {
  const Op* after = op({index.value + 1});
  return (after != nullptr ? after->first_use : first_use_ + uses_.size()) - op(index)->first_use;
}

// Adds the op `self`. Returns the op at which the same row of ops ended last; zero if it is the first such row.
OpId UseHistory::Context::add(std::uint64_t hash, OpId self) {
  std::shift_left(last.begin(), last.end(), 1);
  last.back() = hash;
  std::uint64_t row = 0;
  for (const std::uint64_t one : last) row = mix(row ^ one) + one;
  return std::exchange(ends[row], self);
}

OpId UseHistory::find_twin(OpSignature signature) {
  const OpId by_shapes = shapes_.add(signature.shapes, now());
  const OpId by_kind = kinds_.add(signature.kind, now());
  if (!ops_.empty() && ops_.back().twin.value != 0) {
    const OpId expected{ops_.back().twin.value + 1};
    if (const Op* there = op(expected); there != nullptr && there->kind == signature.kind) return expected;
  }
  if (op(by_shapes) != nullptr) return by_shapes;
  return op(by_kind) != nullptr ? by_kind : OpId{};
}

OpId UseHistory::add_op(OpSignature signature, Seconds at) {
  forget();
  const OpId twin = find_twin(signature);
  ops_.push_back({signature.kind, first_use_ + uses_.size(), twin, at});
  return {first_op_ + ops_.size() - 1};
}

UseId UseHistory::add_use(UseId before) {
  ULLAGE_CHECK(!ops_.empty(), "a use before the first op");
  const OpId self{first_op_ + ops_.size() - 1};
  if (use(before) != nullptr) uses_[before.value - first_use_].next = self;
  uses_.push_back({self, {}, false});
  return {first_use_ + uses_.size() - 1};
}

void UseHistory::add_death(UseId last) {
  if (use(last) == nullptr) return;
  Use& gone = uses_[last.value - first_use_];
  gone.next = now();
  gone.died = true;
}

std::optional<UseHistory::Next> UseHistory::next(UseId last) const {
  const Use* own = use(last);
  const Op* own_op = own != nullptr ? op(own->op) : nullptr;
  const Op* twin = own_op != nullptr ? op(own_op->twin) : nullptr;
  if (twin == nullptr) return std::nullopt;
  const std::uint64_t place = last.value - own_op->first_use;
  if (place >= uses_of(own_op->twin)) return std::nullopt;
  const Use* then = use({twin->first_use + place});
  if (then == nullptr || then->next.value == 0) return std::nullopt;
  return Next{{own->op.value + (then->next.value - own_op->twin.value)}, then->died};
}

std::optional<Seconds> UseHistory::time_until(std::uint64_t ahead) const {
  if (ops_.empty()) return std::nullopt;
  const Op* twin = op(ops_.back().twin);
  const Op* then = op({ops_.back().twin.value + ahead});
  if (twin == nullptr || then == nullptr) return std::nullopt;
  return Seconds{then->at.count - twin->at.count};
}

// Forgets half of all ops at a time, so that the map of contexts is swept seldom.
void UseHistory::forget() {
  if (ops_.size() < most_ops_) return;
  const std::size_t gone = most_ops_ / 2;
  const std::uint64_t uses_gone = ops_[gone].first_use - first_use_;
  ops_.erase(ops_.begin(), ops_.begin() + static_cast<std::ptrdiff_t>(gone));
  uses_.erase(uses_.begin(), uses_.begin() + static_cast<std::ptrdiff_t>(uses_gone));
  first_op_ += gone;
  first_use_ += uses_gone;
  for (Context* context : {&shapes_, &kinds_})
    std::erase_if(context->ends, [this](const auto& known) { return known.second.value < first_op_; });
}

}  // namespace ullage::store
