// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_phases.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace ullage::trace {
namespace {

using Ops = std::span<const OpId>;

class OpPhases final {
 public:
  explicit OpPhases(const TakeIndex& index) : index_(index), stays_(index.leaf.size()) {
    const std::size_t ops = index.root.size();
    phases_.ops.reserve(ops);
    phases_.call.assign(ops, TakePhases::kNoCall);
    for (std::size_t i = 0; i < ops; ++i) {
      const OpDetail& one = index.take.details[i];
      phases_.ops.push_back(one.backward              ? Phase::Backward
                            : i < index.first_forward ? Phase::Loading
                            : on_gradients(one)       ? Phase::Optimizer
                            : one.grad_mode           ? Phase::Forward
                                                      : Phase::Evaluation);
    }
    find_saves();
    find_what_stays();
  }

  TakePhases run() {
    std::map<std::uint32_t, std::vector<OpId>> by_thread;
    for (std::size_t i = 0; i < phases_.ops.size(); ++i) {
      by_thread[index_.take.details[i].thread].push_back(OpId{i});
    }
    for (const auto& [thread, ops] : by_thread) find_calls(ops);
    return std::move(phases_);
  }

 private:
  bool on_gradients(const OpDetail& op) const {
    return std::ranges::any_of(op.uses, [&](const TensorUse& use) { return index_.gradient[use.storage.value]; });
  }

  // Sets saves_[i] to the number of saves before event i.
  void find_saves() {
    std::uint32_t saves = 0;
    saves_.reserve(index_.take.trace.events.size() + 1);
    for (const Event& one : index_.take.trace.events) {
      saves_.push_back(saves);
      saves += std::holds_alternative<event::Save>(one.what);
    }
    saves_.push_back(saves);
  }

  // A storage stays if it was made before the first forward pass.
  void find_what_stays() {
    const Take& take = index_.take;
    const EventId loaded =
        index_.first_forward < take.details.size() ? take.details[index_.first_forward].begin : EventId{};
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      const Storage& one = take.trace.storages[i];
      stays_[i] = one.from_before || one.born < loaded;
    }
  }

  // Finds the optimizer's calls in the ops of one thread, which are in order.
  void find_calls(Ops ops) {
    std::size_t barrier = 0;  // the next call's phase begins here at the earliest
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (index_.updates(ops[i])) {
        const std::size_t last = last_update(ops, i);
        fill(ops.subspan(barrier, i - barrier));
        fill(ops.subspan(i, last + 1 - i));
        for (const OpId op : ops.subspan(i, last + 1 - i)) phases_.call[op.value] = calls_;
        ++calls_;
        i = last + fill_after(ops.subspan(last + 1));
        barrier = i + 1;
      } else if (is_barrier(ops[i])) {
        barrier = i + 1;
      }
    }
  }

  void fill(Ops ops) {
    for (const OpId op : ops) phases_.ops[op.value] = Phase::Optimizer;
  }

  bool is_barrier(OpId op) const {
    const Phase phase = phases_.ops[op.value];
    return phase != Phase::Evaluation && phase != Phase::Optimizer;
  }

  std::size_t last_update(Ops ops, std::size_t first) const {
    std::size_t last = first;
    const std::uint32_t saved = saves_[index_.detail(ops[first]).begin.value];
    for (std::size_t i = first; i < ops.size(); ++i) {
      const OpDetail& one = index_.detail(ops[i]);
      if (one.backward || saves_[one.end.value] != saved) break;
      if (index_.updates(ops[i])) last = i;
    }
    return last;
  }

  // Finds the ops after a call that still belong to the optimizer, such as averages of the weights, and sets their
  // phase. They run without grad mode, use only storages that stay and what they made from those, and end with an op
  // that writes to what stays. Returns how many they are.
  std::size_t fill_after(Ops ops) {
    std::vector<StorageId> made;
    std::size_t count = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const OpDetail& one = index_.detail(ops[i]);
      if (one.grad_mode || is_barrier(ops[i]) || one.uses.empty()) break;
      bool writes = false, strange = false, makes = false;  // a BatchNorm writes its statistics, but makes a result too
      for (const TensorUse& use : one.uses) {
        const bool stays = stays_[use.storage.value];
        writes |= stays && use.how == TensorUse::How::Written;
        if (stays) continue;
        if (use.how == TensorUse::How::Output) {
          made.push_back(use.storage);
          makes = true;
        } else {
          strange |= std::ranges::find(made, use.storage) == made.end();
        }
      }
      if (strange || made.size() > kMostMade) break;
      if (!writes || makes) continue;
      count = i + 1;
      made.clear();
    }
    fill(ops.first(count));
    return count;
  }

  static constexpr std::size_t kMostMade = 4;  // storages made from one such write to the next

  const TakeIndex& index_;
  std::vector<std::uint32_t> saves_;
  std::vector<bool> stays_;  // by storage
  std::uint32_t calls_ = 0;
  TakePhases phases_;
};

void find_event_phases(const TakeIndex& index, TakePhases& phases) {
  const std::vector<Event>& events = index.take.trace.events;
  phases.events.resize(events.size());
  Phase before = Phase::Loading;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (index.open[i] != kNoOp) before = phases.ops[index.open[i].value];
    phases.events[i] = before;
  }
  std::optional<Phase> after;
  for (std::size_t i = events.size(); i-- > 0;) {
    if (index.open[i] != kNoOp) {
      after = phases.ops[index.open[i].value];
    } else if (after && std::holds_alternative<event::Allocation>(events[i].what)) {
      phases.events[i] = *after;
    }
  }
}

}  // namespace

TakePhases take_phases(const TakeIndex& index) {
  TakePhases phases = OpPhases(index).run();
  find_event_phases(index, phases);
  return phases;
}

}  // namespace ullage::trace
