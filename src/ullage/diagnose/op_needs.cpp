// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/op_needs.h"

#include "ullage/diagnose/evidence.h"

#include <algorithm>
#include <map>

namespace ullage::diagnose {
namespace {

// Returns for each op, by OpId, the outermost op around it (ops of one thread nest), or itself.
std::vector<OpId> outermost_ops(const trace::Take& take) {
  std::vector<OpId> outermost(take.details.size(), trace::kNoOp);
  std::map<std::uint32_t, std::vector<OpId>> open;  // the ops in flight, by thread
  for (const trace::Event& event : take.trace.events) {
    const auto* begun = std::get_if<trace::event::OpBegin>(&event.what);
    const auto* ended = std::get_if<trace::event::OpEnd>(&event.what);
    if (!begun && !ended) continue;
    const OpId op = begun ? begun->op : ended->op;
    std::vector<OpId>& in_flight = open[take.details[op.value].thread];
    if (begun) {
      outermost[op.value] = in_flight.empty() ? op : in_flight.front();
      in_flight.push_back(op);
    } else {
      std::erase(in_flight, op);
    }
  }
  return outermost;
}

bool can_be_cut(const std::string& name) {
  return name.find("_foreach_") != std::string::npos || name.find("_fused_") != std::string::npos;
}

// Counts bytes for each outermost op, together with the ops inside it. There are three sums: its inputs, what it has
// made so far and is still live, and the most of the latter at once.
class Needs final {
 public:
  explicit Needs(const trace::Take& take)
      : take_(take),
        outermost_(outermost_ops(take)),
        given_(take.details.size()),
        made_(take.details.size()),
        most_made_(take.details.size()),
        counted_(take.trace.storages.size(), trace::kNoOp) {}

  // Counts the events before `end`.
  void run(EventId end) {
    for (std::size_t i = 0; i < end.value && i < take_.trace.events.size(); ++i) {
      const auto& what = take_.trace.events[i].what;
      if (const auto* begun = std::get_if<trace::event::OpBegin>(&what)) add_given(begun->op);
      if (const auto* born = std::get_if<trace::event::Allocation>(&what)) add_made(born->storage);
      if (const auto* died = std::get_if<trace::event::Free>(&what)) take_off(died->storage, EventId{i});
    }
  }

  Bytes most(OpId op) const { return sum(given_[op.value], most_made_[op.value]).value_or(given_[op.value]); }
  Bytes now(OpId op) const { return sum(given_[op.value], made_[op.value]).value_or(given_[op.value]); }
  OpId outermost(OpId op) const { return outermost_[op.value]; }

 private:
  OpId root_of(OpId op) const { return op.value < outermost_.size() ? outermost_[op.value] : trace::kNoOp; }

  void add_given(OpId op) {
    const OpId root = root_of(op);
    if (root == trace::kNoOp) return;
    const EventId begin = take_.details[root.value].begin;
    for (const trace::TensorUse& use : take_.details[op.value].uses) {
      const trace::Storage& storage = take_.trace.storages[use.storage.value];
      const bool made_within = !storage.from_before && storage.born >= begin;
      if (made_within || counted_[use.storage.value] == root) continue;
      counted_[use.storage.value] = root;
      given_[root.value] = sum(given_[root.value], storage.bytes).value_or(given_[root.value]);
    }
  }
  void add_made(StorageId id) {
    const trace::Storage& storage = take_.trace.storages[id.value];
    const OpId root = root_of(storage.op);
    if (root == trace::kNoOp) return;
    Bytes& made = made_[root.value];
    made = sum(made, storage.bytes).value_or(made);
    most_made_[root.value] = std::max(most_made_[root.value], made);
  }
  // A storage that dies after its op has ended no longer matters for the op's need.
  void take_off(StorageId id, EventId at) {
    const trace::Storage& storage = take_.trace.storages[id.value];
    const OpId root = root_of(storage.op);
    if (root == trace::kNoOp || at > take_.details[root.value].end) return;
    made_[root.value] = saturating_sub(made_[root.value], storage.bytes);
  }

  const trace::Take& take_;
  std::vector<OpId> outermost_;
  std::vector<Bytes> given_, made_, most_made_;  // by OpId of the outermost op
  std::vector<OpId> counted_;                    // by StorageId: the outermost op for which it was counted last
};

Need need_of(const trace::Take& take, OpId op, Bytes bytes) {
  Need need;
  need.op = take.trace.ops[op.value].name, need.bytes = bytes;
  need.detail = take.details[op.value];
  need.detail.uses.clear();
  return need;
}

}  // namespace

std::optional<Need> largest_need(const trace::Take& take) {
  Needs needs(take);
  needs.run(take.trace.end());
  std::optional<OpId> largest;
  for (std::size_t i = 0; i < take.details.size(); ++i) {
    const OpId op{i};
    if (needs.outermost(op) != op || can_be_cut(take.trace.ops[i].name) || take.details[i].sliced) continue;
    if (!largest || needs.most(op) > needs.most(*largest)) largest = op;
  }
  if (!largest) return std::nullopt;
  return need_of(take, *largest, needs.most(*largest));
}

std::optional<Need> need_of_failed(const trace::Take& take, EventId event) {
  Needs needs(take);
  needs.run(event);
  std::optional<OpId> failed;
  for (std::size_t i = 0; i < take.details.size(); ++i) {
    const OpId op{i};
    const trace::OpDetail& one = take.details[i];
    if (needs.outermost(op) != op || one.begin > event || one.end < event) continue;
    const bool better = !failed || one.failed || !take.details[failed->value].failed;
    if (better) failed = op;
  }
  if (!failed) return std::nullopt;
  const auto* oom = std::get_if<trace::event::OutOfMemory>(&take.trace.events[event.value].what);
  const Bytes before = needs.now(*failed);
  return need_of(take, *failed, oom ? sum(before, oom->requested).value_or(before) : before);
}

}  // namespace ullage::diagnose
