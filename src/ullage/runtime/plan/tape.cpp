// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/tape.h"

#include "ullage/runtime/ops/op_info.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

// The header says in which places a value can be, and what the fields of a Place mean.

namespace ullage::runtime {
namespace {

using plan::ValueIndex;
using What = plan::Action::What;

plan::Kernels kernels_here() { return followed_device().is_cpu() ? plan::Kernels::Processor : plan::Kernels::Card; }

Address address_of(const StoragePtr& storage) {
  return {reinterpret_cast<std::uint64_t>(storage->_mutable_data_ptr_no_checks().get())};
}

}  // namespace

void Tape::begin_step(std::shared_ptr<const PlanProgram> program, bool follows_one) {
  std::vector<std::pair<ValueIndex, Place>> carried;
  if (follows_one && program_ == program) {
    for (const auto& [last, first] : program->sites().carried) carried.emplace_back(first, place(last));
  }
  forget();
  program_ = std::move(program);
  places_.resize(program_->sites().values);
  taped_.resize(program_->sites().ops.size());
  for (auto& [value, at] : carried) {
    at.ours.reset();
    at.met = false;
    if (!at.in_program()) continue;
    newest_[at.at.value] = value;
    place(value) = std::move(at);
  }
}

void Tape::forget() {
  // Freeing these storages calls freed(), so the tables must be empty before.
  Table<ValueIndex, Place> gone = std::exchange(places_, {});
  newest_.clear();
  taped_.clear();
  mapped_readers_.clear();
  bytes_ = {};
}

// ---- following the program

bool Tape::bind_inputs(plan::OpIndex at, std::span<const StorageUse> inputs) {
  const std::vector<ValueIndex>& reads = program_->op(at).reads;
  if (reads.size() != inputs.size()) return false;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Place& known = place(reads[i]);
    if (known.at == inputs[i].begin && known.newest) {
      known.met = true;
      continue;
    }
    if (program_->is_loose(reads[i])) {
      rebind(reads[i], inputs[i]);
      continue;
    }
    if (known.at != Address{}) {
      // The known storage must be one that lived on from the step before and that no op of this step has used yet. The
      // program may have put another in its place: a batch that is loaded one step ahead.
      if (known.met || !known.newest) return false;
      newest_.erase(known.at.value);
    }
    if (program_->maker(reads[i]) != plan::kNone) return false;  // the step should have made this value
    if (const auto other = newest_.find(inputs[i].begin.value); other != newest_.end()) {
      // The storage holds another value than the plan says. For a storage that lived on from the step before, the value
      // may have been guessed wrongly.
      if (place(other->second).met) return false;
      place(other->second) = {};
      newest_.erase(other);
    }
    bind(reads[i], inputs[i]);
  }
  return true;
}

// Binds a value whose maker the plan left out. No op that is run again reads it, so nothing is lost if it moved.
void Tape::rebind(ValueIndex value, const StorageUse& use) {
  if (place(value).in_program()) newest_.erase(place(value).at.value);
  if (const auto other = newest_.find(use.begin.value); other != newest_.end()) place(other->second).newest = false;
  bind(value, use);
}

bool Tape::runs_on(Address at) const {
  const auto found = newest_.find(at.value);
  return found != newest_.end() && !program_->taped_readers(found->second).empty();
}

void Tape::bind(ValueIndex value, const StorageUse& use) {
  Place& at = place(value);
  at.at = use.begin;
  at.size = use.size;
  at.program = c10::weak_intrusive_ptr<c10::StorageImpl>(use.storage);
  at.newest = at.met = true;
  at.dropped = false;
  newest_[use.begin.value] = value;
}

void Tape::capture(plan::OpIndex at, const OpCall& call, std::span<const StorageUse> inputs) {
  if (!program_->taped(at)) return;
  Taped& taped = taped_[at];
  taped.op = TapedOp::capture(call, inputs, plan::recompute_rule_of(call.name, kernels_here()));
  if (taped.op == nullptr) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].written) taped.written.push_back(i);
  }
  for (const c10::StorageImpl* weight : taped.op->mapped()) mapped_readers_[weight].push_back(at);
  bytes_ += taped.op->bytes();
  counts_.peak = std::max(counts_.peak, bytes_);
}

bool Tape::bind_outputs(plan::OpIndex at, std::span<const StorageUse> inputs, std::span<const c10::IValue> outputs) {
  const plan::Sites::Op& op = program_->op(at);
  if (taped_[at].op != nullptr) taped_[at].op->note_outputs(outputs);
  std::size_t made = 0;
  for (const StorageUse& input : inputs) {
    if (!input.written) continue;
    if (made == op.overwrites) return false;
    StoragePtr held;
    if (const auto before = newest_.find(input.begin.value); before != newest_.end()) {
      place(before->second).newest = false;
      held = std::exchange(place(before->second).ours, nullptr);  // a hold stays with the storage
    }
    bind(op.makes[made], input);
    place(op.makes[made++]).ours = std::move(held);
  }
  if (made != op.overwrites) return false;
  bool as_planned = true;
  std::vector<Address> seen;
  for (const c10::IValue& output : outputs) {
    each_tensor(output, [&](const at::Tensor& tensor) {
      const std::optional<StorageUse> use = storage_use(*tensor.unsafeGetTensorImpl());
      if (!use || !pool_.knows(use->begin) || newest_.contains(use->begin.value)) return;
      if (std::find(seen.begin(), seen.end(), use->begin) != seen.end()) return;
      for (const StorageUse& input : inputs) {
        if (input.begin == use->begin) return;
      }
      seen.push_back(use->begin);
      if (made == op.makes.size()) {
        as_planned = false;
      } else {
        bind(op.makes[made++], *use);
      }
    });
  }
  return as_planned && made == op.makes.size();
}

bool Tape::freed(Address at, bool may_stay) {
  const auto found = newest_.find(at.value);
  if (found == newest_.end()) return false;
  const ValueIndex value = found->second;
  Place& gone = place(value);
  Seen readers, sources;
  const bool stays = may_stay && gone.ours == nullptr && gone.present() && leads_to_dropped(value, readers) &&
                     !can_be_made(value, sources);
  gone.at = {};
  gone.newest = gone.dropped = false;
  newest_.erase(found);
  if (stays) gone.ours = pool_.storage_over(at, gone.size);
  return stays;
}

// Is a dropped value made from `value`, directly or through values that are not present?
bool Tape::leads_to_dropped(ValueIndex value, Seen& seen) const {
  if (!seen.insert(value).second) return false;
  for (const plan::OpIndex reader : program_->taped_readers(value)) {
    const TapedOp* taped = taped_[reader].op.get();
    const plan::Sites::Op& site = program_->op(reader);
    const auto at = std::find(site.reads.begin(), site.reads.end(), value) - site.reads.begin();
    if (taped == nullptr || !taped->needs(static_cast<std::size_t>(at))) continue;
    if (leads_to_dropped(reader, seen)) return true;
  }
  return false;
}

// Is a result of `op` dropped, or a dropped value made from one that is not present?
bool Tape::leads_to_dropped(plan::OpIndex op, Seen& seen) const {
  return std::ranges::any_of(program_->op(op).makes, [&](ValueIndex made) {
    const Place& its = places_[made];
    return (its.in_program() && its.dropped) || (!its.present() && leads_to_dropped(made, seen));
  });
}

bool Tape::can_be_made(ValueIndex value, Seen& seen) const {
  if (!seen.insert(value).second) return true;
  const plan::OpIndex maker = program_->maker(value);
  const TapedOp* taped = maker == plan::kNone ? nullptr : taped_[maker].op.get();
  if (taped == nullptr || !taped_[maker].mapped_stand()) return false;
  const std::vector<ValueIndex>& reads = program_->op(maker).reads;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (taped->needs(i) && !places_[reads[i]].present() && !can_be_made(reads[i], seen)) return false;
  }
  return true;
}

// ---- the actions of a plan

bool Tape::carry_out(const plan::Action& action) {
  bool done = true;
  switch (action.what) {
    case What::Drop:
      drop(action.value, program_->is_last(action));
      return true;
    case What::Recompute:
    case What::BatchNorm:
      done = run_again(action.op, action.keeps, action.what == What::BatchNorm);
      break;
    case What::Hold: {
      Place& held = place(action.value);
      if (held.in_program() && !held.ours) held.ours = held.program.lock();
      done = held.ours != nullptr;
      break;
    }
    case What::Spill:
    case What::Restore:
    case What::WriteAhead:
    case What::ReadAhead: {
      const Place& moved = place(action.value);
      const Address at = moved.ours != nullptr ? address_of(moved.ours) : moved.in_program() ? moved.at : Address{};
      if (at == Address{}) {
        done = false;
      } else if (action.what == What::Spill) {
        (void)pager_.planned().spill(at);  // no effect if it is spilled already
      } else if (action.what == What::WriteAhead) {
        pager_.planned().write_ahead(at);
      } else if (action.what == What::ReadAhead) {
        pager_.planned().read_ahead(at);
      } else if (const auto missing = pager_.bring_back(at)) {
        pool_.refuse(*missing, "a plan");
      }
      break;
    }
  }
  if (done) return true;
  ++counts_.missed;
  // A value whose place is not known yet (in a first step) need not move. But later actions rely on recomputes and
  // holds.
  return action.what != What::Recompute && action.what != What::BatchNorm && action.what != What::Hold;
}

void Tape::drop(ValueIndex value, bool last) {
  Place& at = place(value);
  if (!at.present()) {
    ++counts_.missed;
    return;
  }
  const StoragePtr let_go = std::exchange(at.ours, nullptr);
  const bool held = let_go != nullptr && at.in_program();
  if (let_go != nullptr && !held) return;
  if (held && let_go.use_count() == 1) return;  // the program let go of it before
  // Spills the bytes instead of dropping them if they could not be recomputed when the program touches them. Reasons:
  // the step does not make them again, their op is not on tape, its inputs are lost, or somebody wrote to them unseen.
  const plan::OpIndex maker = program_->maker(value);
  const TapedOp* taped = maker == plan::kNone ? nullptr : taped_[maker].op.get();
  Seen sources;
  if (last || taped == nullptr || !taped->made_stands() || !can_be_made(value, sources)) {
    if (!last) ++counts_.missed;
    (void)pager_.planned().spill(at.at);
    return;
  }
  if (!pager_.planned().drop(at.at)) {
    ++counts_.missed;
    return;
  }
  at.dropped = true;
}

StoragePtr Tape::bytes_of(ValueIndex value) {
  const Place& at = place(value);
  if (at.ours != nullptr) return at.ours;
  return at.in_program() && !at.dropped ? at.program.lock() : nullptr;
}

// Runs `op` again and keeps those of its results that are in `keeps`. False (why_not() tells): the op is not on tape,
// or something that it needs is gone or changed.
bool Tape::run_again(plan::OpIndex op, std::span<const ValueIndex> keeps, bool batch_norm) {
  const plan::Sites::Op& site = program_->op(op);
  const Taped& taped = taped_[op];
  if (taped.op == nullptr) return cannot("the op that made it is not on tape");
  batch_norm = batch_norm && taped.op->can_recompute_batch_norm();
  std::vector<StoragePtr> inputs(site.reads.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!taped.op->needs(i)) continue;
    inputs[i] = bytes_of(site.reads[i]);
    if (inputs[i] == nullptr) return cannot("an input of " + taped.op->name() + " is gone");
    // These are the program's own bytes. If something unseen has written to them, they must not pass for the old ones.
    if (place(site.reads[i]).ours == nullptr && !taped.op->unchanged(i)) {
      return cannot("an input of " + taped.op->name() + " was written to meanwhile");
    }
  }
  for (const std::size_t i : taped.written) {
    if (inputs[i] != place(site.reads[i]).ours) {  // the program's own bytes are never written
      return cannot(taped.op->name() + " would write to the program's own bytes");
    }
  }
  if (!taped.mapped_stand()) {
    return cannot("a mapped weight that " + taped.op->name() + " reads was written to");
  }
  std::vector<StoragePtr> made;
  if (batch_norm) {
    std::vector<StoragePtr> read = inputs;
    for (std::size_t i = 1; i < site.makes.size(); ++i) {
      read.push_back(bytes_of(site.makes[i]));
      if (read.back() == nullptr) return cannot("a tensor that " + taped.op->name() + " saved is gone");
    }
    made = run_pinned(op, read, true);
  } else {
    made = run_pinned(op, inputs, false);
  }
  std::size_t next = 0;
  const auto keep = [&](ValueIndex value, StoragePtr storage) {
    if (std::find(keeps.begin(), keeps.end(), value) == keeps.end()) return true;
    return put(value, std::move(storage));
  };
  bool done = true;
  for (const std::size_t i : taped.written) {
    place(site.reads[i]).ours.reset();
    done = keep(site.makes[next++], std::move(inputs[i])) && done;
  }
  for (StoragePtr& storage : made) {
    if (next == site.makes.size()) return cannot(taped.op->name() + " returned more tensors than at first");
    done = keep(site.makes[next++], std::move(storage)) && done;
  }
  return done;
}

std::vector<StoragePtr> Tape::run_pinned(plan::OpIndex op, std::span<const StoragePtr> inputs, bool batch_norm) {
  const auto began = std::chrono::steady_clock::now();
  const Taped& taped = taped_[op];
  c10::SmallVector<store::OpInput, 8> pinned;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const bool written = std::find(taped.written.begin(), taped.written.end(), i) != taped.written.end();
    pinned.push_back(
        {address_of(inputs[i]), Bytes{inputs[i]->nbytes()}, written, /*sliceable=*/false, /*only_read=*/!written});
  }
  if (const auto missing = pager_.begin_op(0, std::span(pinned.data(), pinned.size()))) {
    pool_.refuse(*missing, "running an op again");
  }
  pool_.update_marks();
  struct Unpin final {
    store::Pager& pager;
    ~Unpin() { pager.end_op(/*remember=*/false); }
  } const unpin{pager_};
  for (const store::OpInput& input : pinned) pool_.await_streams(input.storage, input.size);
  std::vector<StoragePtr> made;
  if (batch_norm) {
    made.push_back(taped.op->recompute_batch_norm(inputs));
  } else {
    made = taped.op->run(inputs);
  }
  for (const StoragePtr& storage : made) {
    pool_.await_streams(address_of(storage), Bytes{storage->nbytes()});
  }
  ++counts_.recomputed_ops;
  counts_.recompute.count += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return made;
}

// Moves the pages of `storage` to the program's storage if that still holds the value, else keeps `storage` here.
bool Tape::put(ValueIndex value, StoragePtr storage) {
  Place& at = place(value);
  if (at.present()) return true;
  if (!at.in_program()) {
    at.ours = std::move(storage);
    return true;
  }
  if (!pager_.planned().adopt(at.at, address_of(storage))) return cannot("its storage could not take the bytes");
  at.dropped = false;
  return true;
}

bool Tape::cannot(std::string why) {
  why_not_ = std::move(why);
  return false;
}

// ---- on demand

// Makes `value` present, recomputing its inputs first. Adds all values that it made to `made`.
bool Tape::ensure(ValueIndex value, std::vector<ValueIndex>& made) {
  if (place(value).present()) return true;
  const plan::OpIndex maker = program_->maker(value);
  if (maker == plan::kNone) return cannot("it was made before the step that the tape holds");
  if (taped_[maker].op == nullptr) return cannot("the op that made it is not on tape");
  const plan::Sites::Op& site = program_->op(maker);
  // Two rounds: making one input may overwrite another that was present before.
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < site.reads.size(); ++i) {
      if (taped_[maker].op->needs(i) && !ensure(site.reads[i], made)) return false;
    }
  }
  made.push_back(value);
  return run_again(maker, std::span(&value, 1), false) && place(value).present();
}

bool Tape::recompute(Address at) {
  const auto found = newest_.find(at.value);
  if (found == newest_.end() || !place(found->second).dropped) return cannot("the plan did not drop it");
  const ValueIndex value = found->second;
  std::vector<ValueIndex> made;
  const bool done = ensure(value, made);
  for (const ValueIndex one : made) {
    if (!place(one).in_program()) place(one).ours.reset();
  }
  return done;
}

bool Tape::give_blank(Address at) {
  const auto found = newest_.find(at.value);
  if (found == newest_.end() || !place(found->second).dropped) return false;
  const StoragePtr storage = place(found->second).program.lock();
  if (storage == nullptr) return false;
  const c10::DataPtr bytes = pool_.allocate(storage->nbytes());
  if (!pager_.planned().adopt(at, {reinterpret_cast<std::uint64_t>(bytes.get())})) return false;
  blanks_.push_back(at);
  return true;
}

void Tape::take_blank_back() {
  for (const Address at : std::exchange(blanks_, {})) {
    if (newest_.contains(at.value)) (void)pager_.planned().drop(at);
  }
}

// Recomputes all that is dropped. False: something could not be made.
bool Tape::make_dropped() {
  std::vector<Address> dropped;
  for (const Place& at : places_) {
    if (at.in_program() && at.dropped) dropped.push_back(at.at);
  }
  bool all = true;
  for (const Address at : dropped) {
    // Meanwhile the value may have been freed, or have been recomputed together with another one.
    const auto found = newest_.find(at.value);
    if (found == newest_.end() || !place(found->second).dropped) continue;
    try {
      all = recompute(at) && all;
    } catch (const std::exception&) {
      all = false;  // no room
    }
  }
  return all;
}

bool Tape::hand_back() {
  if (!make_dropped()) {
    hold_sources();
    return false;
  }
  forget();
  program_ = nullptr;
  return true;
}

// Holds the storages that dropped values are made from, because the program may free them from here on.
void Tape::hold_sources() {
  Table<ValueIndex, bool> seen(places_.size());
  std::vector<ValueIndex> needed;
  const auto need = [&](ValueIndex value) {
    if (seen[value]) return;
    seen[value] = true;
    needed.push_back(value);
  };
  for (const ValueIndex i : places_.ids()) {
    if (places_[i].in_program() && places_[i].dropped) need(i);
  }
  while (!needed.empty()) {
    const ValueIndex value = needed.back();
    needed.pop_back();
    Place& at = place(value);
    if (at.present()) {
      if (at.ours == nullptr) at.ours = at.program.lock();
      continue;
    }
    const plan::OpIndex maker = program_->maker(value);
    if (maker == plan::kNone || taped_[maker].op == nullptr) continue;
    const std::vector<ValueIndex>& reads = program_->op(maker).reads;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (taped_[maker].op->needs(i)) need(reads[i]);
    }
  }
}

void Tape::overwritten_outside(const c10::StorageImpl* storage) {
  const auto found = mapped_readers_.find(storage);
  if (found == mapped_readers_.end()) return;
  const std::vector<plan::OpIndex> readers = std::move(found->second);
  mapped_readers_.erase(found);
  Seen seen;
  const auto is_needed = [&](plan::OpIndex reader) { return leads_to_dropped(reader, seen); };
  if (std::ranges::any_of(readers, is_needed)) (void)make_dropped();
  for (const plan::OpIndex reader : readers) taped_[reader].mapped_written = true;
}

void Tape::overwritten(Address at) {
  const auto known = [&] { return newest_.find(at.value); };
  if (known() != newest_.end() && place(known()->second).ours != nullptr) (void)make_dropped();
  const auto found = known();
  if (found == newest_.end()) return;
  Place& lost = place(found->second);
  lost.newest = false;
  newest_.erase(found);
  lost.ours.reset();  // it holds something else now
}

}  // namespace ullage::runtime
