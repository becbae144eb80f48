// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/comparison.h"

#include "ullage/predict/comparison_events.h"
#include "ullage/predict/event_text.h"

#include <algorithm>
#include <variant>

namespace ullage::predict {

namespace e = trace::event;

Comparison::Comparison(const trace::Take& first, const std::vector<bool>& left_out, const trace::Take& other,
                       const std::vector<bool>& other_left_out, std::size_t index)
    : first_(first, left_out),
      other_(other, other_left_out),
      index_(index),
      partner_(first.trace.storages.size(), kNoPartner),
      partner_of_other_(other.trace.storages.size(), kNoPartner) {
  for (std::size_t i = 0; i < other.trace.storages.size(); ++i) {
    const trace::Storage& storage = other.trace.storages[i];
    if (storage.from_before) spare_.emplace(storage.bytes.count, StorageId{i});
  }
}

Comparison::Side::Side(const trace::Take& take_, const std::vector<bool>& left_out_)
    : take(take_), left_out(left_out_), by_worker(take_.trace.events.size()) {
  std::size_t running = 0;
  for (std::size_t i = 0; i < by_worker.size(); ++i) {
    const trace::Event& event = take.trace.events[i];
    if (as<e::OpBegin>(event)) ++running;
    if (as<e::OpEnd>(event) && running > 0) --running;
    if (const auto* born = as<e::Allocation>(event)) {
      by_worker[i] = running > 0 && take.trace.storages[born->storage.value].op == trace::kNoOp;
    }
  }
}

bool Comparison::Side::skips(std::size_t event) const {
  if (event >= take.trace.events.size()) return false;
  const StorageId* id = storage_of(take.trace.events[event]);
  return id != nullptr && left_out[id->value];
}

// Keeps `detail` for the text of the difference. Returns false, so that a comparison can return it.
bool Comparison::said(const char* detail) {
  detail_ = detail;
  return false;
}

// Do the two storages correspond? If both are still unpaired, they become a pair, provided that both are from before or
// neither is.
bool Comparison::pair(StorageId mine, StorageId theirs) {
  if (partner_[mine.value] == theirs) return true;
  if (partner_[mine.value] != kNoPartner || partner_of_other_[theirs.value] != kNoPartner) return false;
  const bool before = first_.take.trace.storages[mine.value].from_before;
  const bool other_before = other_.take.trace.storages[theirs.value].from_before;
  if (before != other_before) return false;
  partner_[mine.value] = theirs;
  partner_of_other_[theirs.value] = mine;
  return true;
}

bool Comparison::same_tensors(OpId op, bool outputs) {
  const std::vector<trace::TensorUse>& mine = first_.take.details[op.value].uses;
  const std::vector<trace::TensorUse>& theirs = other_.take.details[op.value].uses;
  if (mine.size() != theirs.size()) return said("with another number of tensors");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].how != theirs[i].how || mine[i].dtype != theirs[i].dtype) return said("with tensors of other types");
    if (mine[i].sizes.size() != theirs[i].sizes.size()) return said("with tensors of other ranks");
    if ((mine[i].how == trace::TensorUse::How::Output) != outputs) continue;
    if (!pair(mine[i].storage, theirs[i].storage)) return said("with another storage");
  }
  return true;
}

bool Comparison::same_op(OpId op, OpId other) {
  if (op != other) return said("in another order");
  const trace::OpDetail& mine = first_.take.details[op.value];
  const trace::OpDetail& theirs = other_.take.details[op.value];
  if (first_.take.trace.ops[op.value].name != other_.take.trace.ops[op.value].name) return false;
  if (mine.node != theirs.node || mine.layer != theirs.layer || mine.backward != theirs.backward) return false;
  if (mine.grad_mode != theirs.grad_mode) return said("with another setting of the gradient mode");
  if (mine.failed != theirs.failed) return said("which fails in only one of them");
  if (mine.sliced != theirs.sliced) return said("which runs in slices in only one of them");
  return same_tensors(op, false);
}

// Compares two events of the same kind.
bool Comparison::same_event(const trace::Event& mine, const trace::Event& theirs) {
  if (const auto* born = as<e::Allocation>(mine)) {
    const StorageId other = as<e::Allocation>(theirs)->storage;
    partner_[born->storage.value] = other;
    partner_of_other_[other.value] = born->storage;
    return true;
  }
  if (const auto* died = as<e::Free>(mine)) {
    return pair(died->storage, as<e::Free>(theirs)->storage) || said("of another storage");
  }
  if (const auto* asked = as<e::FreeRequest>(mine)) {
    return pair(asked->storage, as<e::FreeRequest>(theirs)->storage) || said("of another storage");
  }
  if (const auto* begun = as<e::OpBegin>(mine)) return same_op(begun->op, as<e::OpBegin>(theirs)->op);
  if (const auto* ended = as<e::OpEnd>(mine)) {
    return ended->op == as<e::OpEnd>(theirs)->op ? same_tensors(ended->op, true) : said("in another order");
  }
  if (const auto* saved = as<e::Save>(mine)) {
    if (saved->kind != as<e::Save>(theirs)->kind) return said("as something else");
    return pair(saved->storage, as<e::Save>(theirs)->storage) || said("of another storage");
  }
  if (const auto* given_up = as<e::Unsave>(mine)) {
    return pair(given_up->storage, as<e::Unsave>(theirs)->storage) || said("of another storage");
  }
  return true;
}

bool Comparison::same_role(const trace::RoleSeen& mine, const trace::RoleSeen& theirs) {
  return mine.role == theirs.role && mine.name == theirs.name && pair(mine.storage, theirs.storage);
}

// Compares the borders, roles and charges of both takes up to the current event.
bool Comparison::same_notes() {
  const auto due = [](const auto& notes, std::size_t next, std::size_t at) {
    return next < notes.size() && notes[next].at.value <= at;
  };
  while (true) {
    const bool mine = due(first_.take.borders, first_.border, first_.at);
    if (mine != due(other_.take.borders, other_.border, other_.at))
      return said("where only one of them has a border of a step or phase");
    if (!mine) break;
    const trace::ReportedBorder& a = first_.take.borders[first_.border++];
    const trace::ReportedBorder& b = other_.take.borders[other_.border++];
    if (a.what != b.what || a.phase != b.phase) return said("where they have different borders of steps or phases");
    if (a.knobs != b.knobs) return said("where they report other sizes of the phase");
  }
  while (true) {
    const bool mine = due(first_.take.roles, first_.role, first_.at);
    if (mine != due(other_.take.roles, other_.role, other_.at))
      return said("where only one of them first uses a parameter");
    if (!mine) break;
    const trace::RoleSeen& a = first_.take.roles[first_.role++];
    if (!same_role(a, other_.take.roles[other_.role++])) return said("where they first use different parameters");
  }
  while (true) {
    const bool mine = due(first_.take.charges, first_.charge, first_.at);
    if (mine != due(other_.take.charges, other_.charge, other_.at))
      return said("where only one of them charges bytes outside the pool");
    if (!mine) return true;
    ++first_.charge, ++other_.charge;
  }
}

// Passes over a birth of the first take if the process kept that storage from an earlier take (comparison.h says when).
bool Comparison::pass_over_kept() {
  if (spare_.empty() || first_.at >= first_.take.trace.events.size()) return false;
  const auto* born = as<e::Allocation>(first_.take.trace.events[first_.at]);
  if (born == nullptr) return false;
  const trace::Storage& kept = first_.take.trace.storages[born->storage.value];
  if (kept.died != first_.take.trace.end()) return false;
  const auto& others = other_.take.trace.events;
  const auto* theirs = other_.at < others.size() ? as<e::Allocation>(others[other_.at]) : nullptr;
  if (theirs != nullptr) {
    const trace::Storage& other = other_.take.trace.storages[theirs->storage.value];
    if (other.died == other_.take.trace.end()) return false;
  }
  const auto [begin, end] = spare_.equal_range(kept.bytes.count);
  for (auto it = begin; it != end; ++it) {
    if (partner_of_other_[it->second.value] != kNoPartner) continue;
    partner_[born->storage.value] = it->second;
    partner_of_other_[it->second.value] = born->storage;
    spare_.erase(it);
    ++first_.at;
    return true;
  }
  return false;
}

void Comparison::skip_left_out() {
  while (first_.skips(first_.at)) ++first_.at;
  while (other_.skips(other_.at)) ++other_.at;
}

// Compares one event or a run of them and moves on. Returns false if the takes differ.
bool Comparison::step() {
  skip_left_out();
  if (pass_over_kept()) return true;
  if (!same_notes()) return false;
  const auto& mine = first_.take.trace.events;
  const auto& theirs = other_.take.trace.events;
  if (first_.at == mine.size() || other_.at == theirs.size())
    return first_.at == mine.size() && other_.at == theirs.size();
  if (first_.at >= run_end_) {
    run_end_ = end_of_run(first_.take, first_.at);
    const std::size_t other_end = end_of_run(other_.take, other_.at);
    if (any_worker(first_, run_end_) || any_worker(other_, other_end)) return same_run(run_end_, other_end);
  }
  if (is_death(mine[first_.at]) && is_death(theirs[other_.at])) return same_deaths();
  if (mine[first_.at].what.index() != theirs[other_.at].what.index()) return false;
  if (!same_event(mine[first_.at], theirs[other_.at])) return false;
  ++first_.at, ++other_.at;
  return true;
}

std::optional<Difference> Comparison::run() {
  const std::size_t all = first_.take.trace.events.size();
  const std::size_t theirs = other_.take.trace.events.size();
  while (first_.at < all || other_.at < theirs) {
    if (!step()) return difference();
  }
  return same_notes() ? std::nullopt : std::optional(difference());
}

Difference Comparison::difference() const {
  Difference found;
  found.take = index_;
  found.event = EventId{first_.at};
  const std::string detail = detail_.empty() ? "" : ", " + detail_;
  found.here = what_happens(first_.take, EventId{first_.at});
  found.there = what_happens(other_.take, EventId{other_.at}) + detail;
  return found;
}

}  // namespace ullage::predict
