// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/removal.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace ullage::predict {
namespace {

namespace e = trace::event;

// New numbers by old ones. A removed entry gets the number of the next one that stays. Has one entry more, for the end.
std::vector<std::uint64_t> renumbered(const std::vector<bool>& gone) {
  std::vector<std::uint64_t> numbers;
  std::uint64_t next = 0;
  for (const bool one : gone) {
    numbers.push_back(next);
    next += one ? 0 : 1;
  }
  numbers.push_back(next);
  return numbers;
}

template <class T>
void erase_marked(std::vector<T>& all, const std::vector<bool>& gone) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) all[kept] = std::move(all[i]);
    ++kept;
  }
  all.resize(kept);
}

class Removal final {
 public:
  Removal(trace::Take& take, std::vector<bool> ops) : take_(take), ops_(std::move(ops)) {
    for (const trace::Event& event : take.trace.events) {
      const auto* begun = std::get_if<e::OpBegin>(&event.what);
      const auto* ended = std::get_if<e::OpEnd>(&event.what);
      events_.push_back((begun != nullptr && ops_[begun->op.value]) || (ended != nullptr && ops_[ended->op.value]));
    }
    new_event_ = renumbered(events_);
    new_op_ = renumbered(ops_);
  }

  void run() {
    for (trace::Storage& storage : take_.trace.storages) {
      if (storage.op != trace::kNoOp) {
        storage.op = ops_[storage.op.value] ? trace::kNoOp : OpId{new_op_[storage.op.value]};
      }
    }
    for (trace::Event& event : take_.trace.events) {
      if (auto* begun = std::get_if<e::OpBegin>(&event.what)) begun->op = OpId{new_op_[begun->op.value]};
      if (auto* ended = std::get_if<e::OpEnd>(&event.what)) ended->op = OpId{new_op_[ended->op.value]};
    }
    renumber_events(take_, new_event_);
    erase_marked(take_.trace.events, events_);
    erase_marked(take_.trace.ops, ops_);
    erase_marked(take_.details, ops_);
  }

 private:
  trace::Take& take_;
  std::vector<bool> ops_, events_;  // true: to be removed
  std::vector<std::uint64_t> new_op_, new_event_;
};

}  // namespace

void remove_ops(trace::Take& take, std::vector<bool> ops) { Removal(take, std::move(ops)).run(); }

void renumber_events(trace::Take& take, const std::vector<std::uint64_t>& numbers) {
  const auto move = [&](EventId& event) { event = EventId{numbers[std::min(event.value, numbers.size() - 1)]}; };
  for (trace::Storage& storage : take.trace.storages) {
    move(storage.born);
    move(storage.tensor_died);
    move(storage.died);
  }
  for (trace::OpDetail& detail : take.details) {
    move(detail.begin);
    move(detail.end);
  }
  for (trace::RoleSeen& role : take.roles) move(role.at);
  for (trace::ReportedBorder& border : take.borders) move(border.at);
  for (trace::Charged& charge : take.charges) move(charge.at);
  for (trace::Gap& gap : take.gaps) move(gap.at);
}

}  // namespace ullage::predict
