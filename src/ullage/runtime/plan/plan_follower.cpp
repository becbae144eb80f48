// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/plan_follower.h"

#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/op_info.h"

#include "ullage/base/threads.h"
#include "ullage/plan/model/site_key.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

namespace ullage::runtime {
namespace {

// How many calls of this thread hold the follower's lock. A fault in such a call cannot be served, because the helper
// would wait for that lock.
thread_local int inside = 0;
struct Inside final {
  Inside() { ++inside; }
  ~Inside() { --inside; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// A program that leaves a step before this many ops had only seemed to begin it. That is not a deviation. It still
// counts as a lost step, because a plan whose first ops fit no step is left there each time.
constexpr plan::OpIndex kFalseStart{8};

// The storages of the pool among the arguments of a call, each once and in their order, and the call's key.
struct Met {
  std::vector<StorageUse> inputs;
  std::uint64_t key = 0;
};
Met meet_inputs(const OpCall& call, const Pool& pool) {
  Met met;
  plan::SiteKey key(call.name);
  c10::SmallVector<std::int64_t, 5> sizes;
  for (const OpInfo::TensorArgument& argument : info_of(*call.handle).tensors) {
    each_tensor(call.arguments[argument.position], [&](const at::Tensor& tensor) {
      const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
      std::optional<StorageUse> use = storage_use(impl);
      if (!use || !pool.knows(use->begin)) return;
      sizes.clear();
      for (const c10::SymInt& size : impl.sym_sizes_default()) sizes.push_back(size.as_int_unchecked());
      key.add(static_cast<std::uint8_t>(impl.dtype().toScalarType()), std::span(sizes.data(), sizes.size()));
      for (StorageUse& known : met.inputs) {
        if (known.begin != use->begin) continue;
        known.written |= argument.written;
        return;
      }
      use->written = argument.written;
      met.inputs.push_back(std::move(*use));
    });
  }
  met.key = key.value();
  return met;
}

}  // namespace

// A thread that waits for work. ask() waits for its answer.
struct PlanFollower::Helper {
  std::mutex lock;
  std::condition_variable changed;
  std::optional<Address> asked;
  std::optional<bool> answer;
  std::mutex one_at_a_time;

  explicit Helper(PlanFollower& follower) {
    start_thread([this, &follower] {
      at::init_num_threads();
      for (;;) {
        std::unique_lock held(lock);
        changed.wait(held, [this] { return asked.has_value(); });
        const Address at = *std::exchange(asked, std::nullopt);
        held.unlock();
        bool done = false;
        try {
          done = follower.recompute(at, /*at_fault=*/false);
        } catch (const std::exception&) {  // cannot be passed on to a thread that waits at a fault
        }
        held.lock();
        answer = done;
        changed.notify_all();
      }
    });
  }
  bool ask(Address at) {
    const std::lock_guard one(one_at_a_time);
    std::unique_lock held(lock);
    asked = at;
    changed.notify_all();
    changed.wait(held, [this] { return answer.has_value(); });
    return *std::exchange(answer, std::nullopt);
  }
};

PlanFollower::PlanFollower(store::Store& store, store::Pager& pager, Pool& pool, Bytes least_movable)
    : store_(store), pager_(pager), pool_(pool), least_movable_(least_movable), tape_(pager, pool) {
  pager_.planned().set_recomputer(this);
}

PlanFollower::~PlanFollower() = default;

void PlanFollower::adopt(std::shared_ptr<const PlanProgram> program) {
  const std::lock_guard lock(lock_);
  if (helper_ == nullptr) helper_ = std::make_unique<Helper>(*this);
  next_ = std::move(program);
  lost_steps_.store(0);
  proved_.store(false);
  active_.store(true, std::memory_order_release);
}

// ---- ops

void PlanFollower::begin(OpCall& call) {
  if (!active_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(lock_);
  const Inside here;
  meet(call);
}

void PlanFollower::meet(OpCall& call) {
  const std::uint32_t thread = thread_of_work(true);
  if (place_ != kNowhere && thread != thread_) return;
  Met met = meet_inputs(call, pool_);
  if (!handed_back_ || place_ != kNowhere) note_writes_outside(call);
  in_stray_ = false;
  bool leaves = false;
  if (place_ != kNowhere && !is_next(met.key, met.inputs)) {
    in_stray_ = may_stray(met.inputs);
    stray_key_ = met.key;
    if (in_stray_) return;  // end() sees what it makes
    leave();
    leaves = true;
  }
  if (place_ == kNowhere) try_to_begin(met.key, met.inputs, leaves);
  if (!are_small(met.inputs)) {
    last_keys_[thread] = met.key;
    at_border_ = false;
  }
  if (place_ != kNowhere && !prepare()) leave();
  if (place_ == kNowhere) {
    if (handed_back_) return;
    for (const StorageUse& input : met.inputs) {
      if (input.written) tape_.overwritten(input.begin);
    }
    return;
  }
  tape_.capture(place_, call, met.inputs);
  for (const std::uint32_t i : program_->op(place_).unread) {
    met.inputs[i].unread = true;
    for (StorageUse& input : call.inputs) {
      if (input.begin == met.inputs[i].begin) input.unread = true;
    }
  }
  // If layouts differ, this op first converts its input to another layout, although it does not use the result.
  blanks_will_do_ = !program_->op(place_).unread.empty() && call.name == "aten::convolution_backward";
  inputs_ = std::move(met.inputs);
  in_op_ = true;
}

// Returns false if the plan cannot be followed further. A lack of room counts too, because the pager may still have
// room for the op alone.
bool PlanFollower::carry_out(std::span<const plan::Action> actions) {
  try {
    for (const plan::Action& action : actions) {
      if (!tape_.carry_out(action)) return false;
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void PlanFollower::note_writes_outside(const OpCall& call) {
  for (const StorageUse& input : call.inputs) {
    if (input.written && !pool_.knows(input.begin)) tape_.overwritten_outside(input.storage.get());
  }
}

// Carries out the actions before the op at place_, once.
bool PlanFollower::prepare() { return std::exchange(prepared_, true) || carry_out(program_->before(place_)); }

bool PlanFollower::is_next(std::uint64_t key, std::span<const StorageUse> inputs) {
  return program_->op(place_).key == key && tape_.bind_inputs(place_, inputs);
}

void PlanFollower::end(OpCall&, std::span<const c10::IValue> outputs, bool /*returned*/) noexcept {
  if (!active_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(lock_);
  if (place_ == kNowhere || (!in_op_ && !in_stray_) || thread_of_work(true) != thread_) return;
  const Inside here;
  in_op_ = false;
  tape_.take_blank_back();
  const std::vector<StorageUse> inputs = std::exchange(inputs_, {});
  // Ops that read nothing that can move are no part of a plan (see PlanProgram).
  if (in_stray_ ? makes_nothing(outputs, least_movable_) : inputs.empty() && makes_nothing(outputs, 1_B)) return;
  // An op that was left out of the plan may have the key of the next planned one: keys do not cover what ops make.
  const bool may_be_left_out = !in_stray_ && !program_->op(place_).small && are_small(inputs);
  if (may_be_left_out && makes_nothing(outputs, least_movable_)) return;
  if (in_stray_) {
    leave();
    // The op may be the first of the next step, if the program left out the rest of this one. The op has run already,
    // so it is not on tape.
    if (!try_to_begin(stray_key_, {}, /*leaves=*/true)) return;
    if (program_->taped(place_) || !prepare()) return leave();
  }
  // An op that threw in the observed step too, and that the program caught, made nothing then either.
  if (!tape_.bind_outputs(place_, inputs, outputs) || !carry_out(program_->after(place_))) return leave();
  prepared_ = false;
  place_ = place_.next();
  if (place_ == program_->end()) finish_step();
}

// Does the op's result lie in no storage of the pool of `least` bytes and more?
bool PlanFollower::makes_nothing(std::span<const c10::IValue> outputs, Bytes least) const {
  bool nothing = true;
  for (const c10::IValue& output : outputs) {
    each_tensor(output, [&](const at::Tensor& tensor) {
      const std::optional<StorageUse> use = storage_use(*tensor.unsafeGetTensorImpl());
      if (use && pool_.knows(use->begin) && use->size >= least) nothing = false;
    });
  }
  return nothing;
}

// May an op on these inputs come between two ops of the plan? It may if it cannot affect the storages that the plan
// moves. Its inputs must be too small to move, and no op that the plan runs again may read one that it may write.
bool PlanFollower::may_stray(std::span<const StorageUse> inputs) const {
  return are_small(inputs) && std::ranges::none_of(inputs, [&](const StorageUse& input) {
           return input.written && tape_.runs_on(input.begin);
         });
}

// Are these storages too small for any plan to move?
bool PlanFollower::are_small(std::span<const StorageUse> inputs) const {
  return std::ranges::all_of(inputs, [&](const StorageUse& input) { return input.size < least_movable_; });
}

// ---- steps

// Begins a planned step with this op if it is the first of one.
bool PlanFollower::try_to_begin(std::uint64_t key, std::span<const StorageUse> inputs, bool leaves) {
  if (!begins_step(key, leaves) || !hand_back()) return false;
  if (next_ != nullptr) take_new_plan();
  thread_ = thread_of_work(true);
  place_ = {};
  start_step(/*follows_one=*/false);
  if (is_next(key, inputs)) return true;
  leave();
  return false;
}

// Does a planned step begin with this op? It must come right after the last op of such a step, or after mark_step().
// Ops that read nothing that can move do not count. Or it `leaves` a planned step, because the rest of that one is left
// out: a GradScaler skips the optimizer. A step cannot be followed from a later op, because the ops before would not be
// on tape.
bool PlanFollower::begins_step(std::uint64_t key, bool leaves) {
  const PlanProgram* program = next_ != nullptr ? next_.get() : program_.get();
  if (program == nullptr || program->op({}).key != key) return false;
  return leaves || at_border_ || program->last_key() == last_keys_[thread_of_work(true)];
}

void PlanFollower::start_step(bool follows_one) {
  follows_one_ = follows_one;
  prepared_ = false;
  tape_.begin_step(program_, follows_one);
  pager_.planned().follow_plan(true);
  store_.restart_present_peak();
  rescued_before_ = rescued();
  if (step_hook_) step_hook_(/*ended=*/false);
}

void PlanFollower::finish_step() {
  ++counts_.steps;
  lost_steps_.store(0);
  proved_.store(true);
  if (follows_one_) {  // otherwise the step began with whatever the pager happened to hold
    counts_.peak = std::max(counts_.peak, store_.counts().present_peak);
    counts_.rescues += rescued() - rescued_before_;
    if (step_hook_) step_hook_(/*ended=*/true);
  }
  if (next_ != nullptr) {
    place_ = kNowhere;
    hand_back();
    return;
  }
  place_ = {};
  start_step(/*follows_one=*/true);
}

std::uint64_t PlanFollower::rescued() const {
  const store::PagerCounts moves = pager_.counts();
  return moves.evicted_on_demand + moves.recomputed + tape_.counts().missed;
}

// The program does something else than planned. From here on the pager decides on demand.
void PlanFollower::leave() {
  const bool in_midst = place_ >= kFalseStart;
  place_ = kNowhere;
  in_op_ = false;
  pager_.planned().follow_plan(false);
  counts_.deviations += in_midst ? 1 : 0;
  lost_steps_.fetch_add(1);
  hand_back();
}

bool PlanFollower::hand_back() { return handed_back_ = tape_.hand_back(); }

void PlanFollower::mark_step() {
  if (!active_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(lock_);
  at_border_ = true;
  if (next_ != nullptr || (program_ != nullptr && counts_.steps == steps_at_border_)) lost_steps_.fetch_add(1);
  steps_at_border_ = counts_.steps;
}

// A step may hold none of the ops with which the plan begins, if the observed step also made the optimizer's state or
// was a turn of another loop. No step of the plan begins then, and leave() counts none as lost.
void PlanFollower::note_step_end() {
  if (!active_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(lock_);
  const bool none_began = program_ != nullptr && place_ == kNowhere && counts_.steps == steps_at_border_;
  const bool counted = lost_steps_.load() != lost_at_border_;
  if (next_ != nullptr || (none_began && !counted)) lost_steps_.fetch_add(1);
  steps_at_border_ = counts_.steps;
  lost_at_border_ = lost_steps_.load();
}

void PlanFollower::suspend() {
  const std::lock_guard lock(lock_);
  if (place_ != kNowhere) leave();
  program_ = next_ = nullptr;
}

void PlanFollower::take_new_plan() {
  program_ = std::exchange(next_, nullptr);
  ++counts_.plans;
}

// ---- the pool and the pager

bool PlanFollower::freeing(Address at, bool may_stay) {
  if (!active_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(lock_);
  return tape_.freed(at, may_stay);
}

bool PlanFollower::recompute(Address at, bool at_fault) {
  if (at_fault) return inside == 0 && helper_->ask(at);
  const std::lock_guard lock(lock_);
  const Inside here;
  if (tape_.recompute(at)) return true;
  const auto unread_here = [&](const StorageUse& input) { return input.begin == at && input.unread; };
  if (in_op_ && blanks_will_do_ && std::ranges::any_of(inputs_, unread_here) && tape_.give_blank(at)) return true;
  throw std::runtime_error(tape_.why_not());
}

bool PlanFollower::leads_this_thread() const {
  if (!active_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(lock_);
  return place_ != kNowhere && thread_of_work(false) == thread_;
}

PlanCounts PlanFollower::counts() const {
  const std::lock_guard lock(lock_);
  PlanCounts counts = counts_;
  counts.tape = tape_.counts();
  return counts;
}

std::shared_ptr<const PlanProgram> PlanFollower::program() const {
  const std::lock_guard lock(lock_);
  return program_;
}

}  // namespace ullage::runtime
