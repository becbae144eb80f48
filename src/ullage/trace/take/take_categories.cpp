// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_categories.h"

#include <algorithm>
#include <set>

namespace ullage::trace {
namespace {

constexpr std::uint32_t kNoCall = TakePhases::kNoCall;

// The facts that the ops and saves of a take show about one storage.
struct Seen {
  bool used = false;                // by any op
  bool updated = false;             // written outside backward, after the loading, by an op that did not make it
  bool from_parameters = false;     // made by the backward pass, or made from or written with such data or parameters
  bool made_of_tensors = false;     // made by an op that used tensors that it did not make
  bool written_in_call = false;     // written in an optimizer's call by an op that did not make it
  bool used_in_later_call = false;  // used in a later call than the one that it was made in or for
  bool read_by_optimizer = false;
  bool saved = false;
  bool saved_as_constant = true;  // it is never saved as anything else
  std::uint32_t call = kNoCall;   // the optimizer's call that it was made in or for
};

class CategoryReader final {
 public:
  CategoryReader(const TakeIndex& index, const TakePhases& phases)
      : index_(index), phases_(phases), seen_(index.leaf.size()), call_of_(phases.call) {
    // Ops of the optimizer's phase outside a call belong to the next call, unless a backward pass comes first.
    std::uint32_t next = kNoCall;
    for (std::size_t i = call_of_.size(); i-- > 0;) {
      if (call_of_[i] != kNoCall) next = call_of_[i];
      if (phases_.ops[i] == Phase::Optimizer) call_of_[i] = next;
      if (phases_.ops[i] == Phase::Backward) next = kNoCall;
    }
  }

  std::vector<Seen> run() {
    const Trace& trace = index_.take.trace;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const OpId maker = index_.maker(StorageId{i});
      if (maker == kNoOp) continue;
      seen_[i].call = call_of_[maker.value];
      seen_[i].from_parameters = index_.detail(maker).backward;
    }
    for (std::size_t i = 0; i < trace.ops.size(); ++i) read(OpId{i});
    for (const Event& one : trace.events) {
      const auto* save = std::get_if<event::Save>(&one.what);
      if (save == nullptr) continue;
      seen_[save->storage.value].saved = true;
      seen_[save->storage.value].saved_as_constant &= save->kind == SavedKind::Constant;
    }
    return std::move(seen_);
  }

 private:
  bool made_by(StorageId storage, OpId op) const {
    const OpId maker = index_.maker(storage);
    return maker != kNoOp && (maker == op || index_.root[maker.value] == op);
  }

  void read(OpId op) {
    const OpDetail& detail = index_.detail(op);
    const std::uint32_t call = call_of_[op.value];
    bool from_parameters = false, tensors = false;
    for (const TensorUse& use : detail.uses) {
      if (use.how == TensorUse::How::Output || made_by(use.storage, op)) continue;
      const std::size_t id = use.storage.value;
      tensors = true;
      from_parameters |= index_.leaf[id] || index_.gradient[id] || seen_[id].from_parameters;
    }
    for (const TensorUse& use : detail.uses) {
      Seen& one = seen_[use.storage.value];
      one.used = true;
      one.read_by_optimizer |= use.how == TensorUse::How::Read && phases_.ops[op.value] == Phase::Optimizer;
      one.used_in_later_call |= call != kNoCall && one.call != kNoCall && call > one.call;
      if (made_by(use.storage, op)) {
        one.made_of_tensors |= tensors;
        one.from_parameters |= from_parameters;
      } else if (use.how == TensorUse::How::Written) {
        one.from_parameters |= from_parameters;
        one.written_in_call |= call != kNoCall;
        one.updated |= !detail.backward && op.value >= index_.first_forward;
      }
    }
  }

  const TakeIndex& index_;
  const TakePhases& phases_;
  std::vector<Seen> seen_;
  std::vector<std::uint32_t> call_of_;
};

class Categories final {
 public:
  Categories(const TakeIndex& index, const TakePhases& phases, const Steps& steps)
      : index_(index),
        phases_(phases),
        steps_(steps),
        trace_(index.take.trace),
        seen_(CategoryReader(index, phases).run()) {
    const Take& take = index.take;
    if (std::ranges::find(index.leaf, true) == index.leaf.end()) {
      loaded_ = steps.begins.size() > 1 ? steps.begins[1] : EventId{};
    } else if (index.first_forward < take.details.size()) {
      loaded_ = take.details[index.first_forward].begin;
    }
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      any_updated_ |= index.leaf[i] && index.followed[i] && seen_[i].updated;
    }
    find_ends_of_calls();
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const Storage& one = trace_.storages[i];
      if (!index.leaf[i] || !loaded(one)) continue;
      parameter_sizes_.insert(one.bytes);
      last_parameter_ = std::max(last_parameter_, one.born);
    }
  }

  std::vector<Category> run() const {
    std::vector<Category> categories;
    categories.reserve(seen_.size());
    for (std::size_t i = 0; i < seen_.size(); ++i) categories.push_back(category(StorageId{i}));
    return categories;
  }

 private:
  // A call is over when an op of another phase begins. The storages that the optimizer's function held are freed by
  // then.
  void find_ends_of_calls() {
    const std::size_t ops = phases_.ops.size();
    over_.assign(ops + 1, trace_.end());
    for (std::size_t i = ops; i-- > 0;) {
      over_[i] = phases_.ops[i] == Phase::Optimizer ? over_[i + 1] : index_.take.details[i].begin;
    }
    for (const std::uint32_t call : phases_.call) {
      if (call != kNoCall) calls_ = std::max(calls_, call + 1);
    }
    first_of_call_.assign(calls_, 0);
    for (std::size_t i = ops; i-- > 0;) {
      if (phases_.call[i] != kNoCall) first_of_call_[phases_.call[i]] = i;
    }
  }

  std::size_t step_of(EventId event) const {
    return std::size_t(std::ranges::upper_bound(steps_.begins, event) - steps_.begins.begin());
  }
  bool loaded(const Storage& one) const { return one.from_before || one.born < loaded_; }
  bool is_parameter(StorageId id, const Storage& one) const {
    const bool named = !index_.take.roles[index_.role[id.value]].name.empty();
    const Seen& seen = seen_[id.value];
    // An optimizer that makes new parameters instead of writing to the old ones still reads them.
    const bool trained = index_.followed[id.value] && (seen.updated || loaded(one) || seen.read_by_optimizer);
    return named || trained || (!any_updated_ && loaded(one));
  }

  bool is_state(StorageId id, const Storage& one) const {
    const Seen& seen = seen_[id.value];
    if (seen.call == kNoCall) return seen.written_in_call && loaded(one);
    if (one.died < over_[first_of_call_[seen.call]]) return false;
    if (seen.written_in_call || seen.used_in_later_call) return true;
    return seen.call + 1 == calls_ && one.died >= trace_.end() && parameter_sizes_.contains(one.bytes);
  }

  bool is_workspace(StorageId id, const Storage& one) const {
    const OpId maker = index_.maker(id);
    if (maker == kNoOp || one.from_before) return false;
    const OpDetail& root = index_.detail(index_.root[maker.value]);
    return one.born >= root.begin && one.died < root.end;
  }

  bool is_buffer(StorageId id, const Storage& one) const {
    if (one.from_before) return seen_[id.value].used;
    if (!loaded(one)) return false;
    if (one.died < trace_.end()) return step_of(one.died) > 2;
    // Without a third step it counts if it was made before the last parameter or was written after the loading.
    return steps_.begins.size() > 2 || one.born < last_parameter_ || seen_[id.value].updated;
  }

  bool is_input(StorageId id, const Storage& one) const {
    const Seen& seen = seen_[id.value];
    const OpId maker = index_.maker(id);
    if (seen.from_parameters || one.from_before) return false;
    if (seen.saved) return true;
    if (maker == kNoOp) return true;
    const Phase made = phases_.ops[maker.value];
    return !seen.made_of_tensors && made != Phase::Optimizer && made != Phase::Backward;
  }

  Category category(StorageId id) const {
    const Storage& one = trace_.storages[id.value];
    const Seen& seen = seen_[id.value];
    if (index_.gradient[id.value]) return Category::Gradients;
    if (index_.leaf[id.value]) {
      if (is_parameter(id, one)) return Category::Parameters;
      if (!loaded(one)) return Category::Inputs;
    }
    if (is_state(id, one)) return Category::OptimizerState;
    if (is_workspace(id, one)) return Category::Workspace;
    if (is_buffer(id, one)) return Category::Buffers;
    if (seen.saved && (seen.from_parameters || !seen.saved_as_constant)) return Category::Activations;
    if (is_input(id, one)) return Category::Inputs;
    if (one.from_before) return Category::Unattributed;
    if (step_of(one.died) <= step_of(one.born) + 1) return Category::Temporaries;
    const OpId maker = index_.maker(id);
    const Phase made = maker == kNoOp ? Phase::Unknown : phases_.ops[maker.value];
    return made == Phase::Forward || made == Phase::Evaluation ? Category::Activations : Category::Unattributed;
  }

  const TakeIndex& index_;
  const TakePhases& phases_;
  const Steps& steps_;
  const Trace& trace_;
  const std::vector<Seen> seen_;
  // The begin of the first forward pass. If nothing requires grad, that is unknown: then the begin of the second step.
  EventId loaded_;
  bool any_updated_ = false;
  std::uint32_t calls_ = 0;
  std::vector<std::size_t> first_of_call_;  // index: call; its first op
  std::vector<EventId> over_;               // index: OpId; begin of the first op from there on of another phase
  std::set<Bytes> parameter_sizes_;
  EventId last_parameter_;  // the last birth of a parameter
};

}  // namespace

std::vector<Category> take_categories(const TakeIndex& index, const TakePhases& phases, const Steps& steps) {
  return Categories(index, phases, steps).run();
}

}  // namespace ullage::trace
