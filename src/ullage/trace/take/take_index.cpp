// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_index.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <unordered_map>

namespace ullage::trace {
namespace {

void check(const Take& take) {
  const Trace& trace = take.trace;
  const auto known = [&](StorageId id) { return id.value < trace.storages.size(); };
  ULLAGE_CHECK(take.details.size() == trace.ops.size(), "details of other ops");
  for (const OpDetail& one : take.details) {
    ULLAGE_CHECK(one.begin <= one.end && one.end <= trace.end(), "an op outside the trace");
    ULLAGE_CHECK(std::ranges::all_of(one.uses, known, &TensorUse::storage), "an op uses a storage of another trace");
  }
  ULLAGE_CHECK(std::ranges::all_of(take.roles, known, &RoleSeen::storage), "a role of a storage of another trace");
  for (const Storage& one : trace.storages) {
    ULLAGE_CHECK(one.op == kNoOp || one.op.value < trace.ops.size(), "a storage of another trace's op");
    ULLAGE_CHECK(one.born <= one.died && one.died <= trace.end(), "a storage outside the trace");
  }
}

// Ops that were begun and have not ended, outermost first.
class Running final {
 public:
  void begin(OpId op) { ops_.push_back(op); }
  void clear() { ops_.clear(); }
  // Removes ended ops from the top. Ops can end in any order, so one below the top stays until it is on top.
  void drop_ended(const std::vector<bool>& ended) {
    while (!ops_.empty() && ended[ops_.back().value]) ops_.pop_back();
  }
  OpId outermost() const { return ops_.empty() ? kNoOp : ops_.front(); }
  OpId innermost() const { return ops_.empty() ? kNoOp : ops_.back(); }

 private:
  std::vector<OpId> ops_;
};

// Fills in `root` and `open`. Ops that were running when a gap began count as ended in it.
void nest(TakeIndex& index) {
  const Trace& trace = index.take.trace;
  std::unordered_map<std::uint32_t, Running> of_thread;
  Running all;
  std::vector<bool> ended(trace.ops.size());
  auto gap = index.take.gaps.begin();
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    for (; gap != index.take.gaps.end() && gap->at.value <= i; ++gap) {
      of_thread.clear();
      all.clear();
    }
    if (const auto* begun = std::get_if<event::OpBegin>(&trace.events[i].what)) {
      ULLAGE_CHECK(begun->op.value < trace.ops.size(), "an op of another trace");
      Running& here = of_thread[index.detail(begun->op).thread];
      here.drop_ended(ended);
      here.begin(begun->op);
      all.begin(begun->op);
      index.root[begun->op.value] = here.outermost();
    }
    index.open.push_back(all.innermost());
    if (const auto* end = std::get_if<event::OpEnd>(&trace.events[i].what)) {
      ULLAGE_CHECK(end->op.value < trace.ops.size(), "an op of another trace");
      ended[end->op.value] = true;
      all.drop_ended(ended);
    }
  }
}

void find_roles(TakeIndex& index) {
  for (std::size_t i = 0; i < index.take.roles.size(); ++i) {
    const RoleSeen& one = index.take.roles[i];
    if (one.role == Role::Gradient) {
      index.gradient[one.storage.value] = true;
    } else if (!index.leaf[one.storage.value]) {
      index.leaf[one.storage.value] = true;
      index.role[one.storage.value] = std::uint32_t(i);
    } else if (!one.name.empty()) {
      index.role[one.storage.value] = std::uint32_t(i);  // this entry has its name
    }
  }
  for (const OpDetail& one : index.take.details) {
    if (one.backward || !one.grad_mode) continue;
    for (const TensorUse& use : one.uses) {
      if (use.how == TensorUse::How::Read && index.leaf[use.storage.value]) index.followed[use.storage.value] = true;
    }
  }
}

std::size_t find_first_forward(const TakeIndex& index) {
  for (std::size_t i = 0; i < index.take.trace.events.size(); ++i) {
    if (!std::holds_alternative<event::Save>(index.take.trace.events[i].what)) continue;
    if (index.open[i] != kNoOp) return index.root[index.open[i].value].value;
    const auto next = std::ranges::lower_bound(index.take.details, EventId{i}, {}, &OpDetail::begin);
    return std::size_t(next - index.take.details.begin());
  }
  for (std::size_t i = 0; i < index.take.details.size(); ++i) {
    bool leaf = false, else_read = false;
    for (const TensorUse& use : index.take.details[i].uses) {
      if (use.how == TensorUse::How::Read) (index.leaf[use.storage.value] ? leaf : else_read) = true;
    }
    if (leaf && else_read) return index.root[i].value;
  }
  return 0;
}

}  // namespace

TakeIndex::TakeIndex(const Take& of)
    : take(of),
      root(of.details.size()),
      leaf(of.trace.storages.size()),
      gradient(leaf.size()),
      followed(leaf.size()),
      role(leaf.size()) {
  check(of);
  for (std::size_t i = 0; i < root.size(); ++i) root[i] = OpId{i};
  open.reserve(of.trace.events.size());
  nest(*this);
  find_roles(*this);
  first_forward = find_first_forward(*this);
}

OpId TakeIndex::maker(StorageId storage) const {
  const Storage& one = take.trace.storages[storage.value];
  if (one.op != kNoOp || one.from_before || one.born >= take.trace.end()) return one.op;
  return open[one.born.value];
}

bool TakeIndex::updates(OpId op) const {
  const OpDetail& one = detail(op);
  if (one.backward || op.value < first_forward) return false;
  return std::ranges::any_of(one.uses, [&](const TensorUse& use) {
    return use.how == TensorUse::How::Written && leaf[use.storage.value] && followed[use.storage.value];
  });
}

}  // namespace ullage::trace
