// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries a plan out. Follows the program op by op from the first op of a step, by each op's key and dataflow. Before
// and after each op it carries out the plan's actions. If the program does something else, everything dropped is
// recomputed at once, and the pager decides on demand until another planned step begins.

#include "ullage/runtime/ops/op_call.h"
#include "ullage/runtime/plan/tape.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace ullage::runtime {

struct PlanCounts {
  std::uint64_t plans = 0;       // adopted plans: a step under them began
  std::uint64_t steps = 0;       // steps that ran as planned from their first op to their last
  std::uint64_t deviations = 0;  // times that the program left a planned step after at least 8 of its ops
  // The next two count only steps that ran as planned and came right after another such step.
  std::uint64_t rescues = 0;  // storages evicted or recomputed on demand, and actions that could not be carried out
  Bytes peak;                 // most bytes present at once
  TapeCounts tape;
};

class PlanFollower final : public OpListener, public store::Recomputer {
 public:
  // All must live for ever, like the follower itself. `least_movable`: as for the planner, plan::StandsOn.
  PlanFollower(store::Store& store, store::Pager& pager, Pool& pool, Bytes least_movable);
  ~PlanFollower() override;

  // Calls `hook` when a step that is followed begins (false), and when one has run as planned from end to end, if the
  // step before it was followed too (true). Set it before the first adopt().
  void set_step_hook(std::function<void(bool ended)> hook) { step_hook_ = std::move(hook); }

  // Follows `program` from the next step on that begins with the program's first op. Any thread may call.
  void adopt(std::shared_ptr<const PlanProgram> program);
  // Several steps in a row did not run as the adopted plan says. Either the program's steps have changed, or the
  // observed one was not like the others (a first step often does more).
  bool lost_for_good() const { return lost_steps_.load() >= (proved_.load() ? kPatience : kPatienceAtFirst); }

  // The follower is the outermost listener, so that it acts before the pager looks for an op's inputs.
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  // Stops following until another plan is adopted. Call it on the thread that is followed.
  void suspend();

  // The program reports that a step ended.
  void mark_step();
  // A step was seen to end, by a call of an optimizer. Its border need not be where those of the plan are.
  void note_step_end();

  // Called by the pool, from any thread; see PoolListener::freeing().
  bool freeing(Address at, bool may_stay);
  // Called by the pager when a dropped storage is needed; see store::Recomputer.
  bool recompute(Address at, bool at_fault) override;

  // True while this thread's ops run as planned. Tensors that autograd unpacks then come back before the op that reads
  // them, so nothing else need restore them.
  bool leads_this_thread() const;

  // In a forked child: stops following. Nothing is dropped then, because the pager recomputes everything before a fork.
  void after_fork_in_child() { active_.store(false); }

  PlanCounts counts() const;
  std::shared_ptr<const PlanProgram> program() const;

 private:
  // Steps that may be lost in a row: after one that ran as planned, and before. A lost step counts twice if the program
  // reports where steps end.
  static constexpr std::uint64_t kPatience = 6, kPatienceAtFirst = 3;
  static constexpr plan::OpIndex kNowhere = plan::kNone;

  void meet(OpCall& call);
  void note_writes_outside(const OpCall& call);
  bool prepare();
  bool makes_nothing(std::span<const c10::IValue> outputs, Bytes least) const;
  bool may_stray(std::span<const StorageUse> inputs) const;
  bool are_small(std::span<const StorageUse> inputs) const;
  bool is_next(std::uint64_t key, std::span<const StorageUse> inputs);
  bool try_to_begin(std::uint64_t key, std::span<const StorageUse> inputs, bool leaves);
  bool begins_step(std::uint64_t key, bool leaves);
  void start_step(bool follows_one);
  void finish_step();
  bool carry_out(std::span<const plan::Action> actions);
  void leave();
  bool hand_back();
  void take_new_plan();
  std::uint64_t rescued() const;

  store::Store& store_;
  store::Pager& pager_;
  Pool& pool_;
  const Bytes least_movable_;
  Tape tape_;
  mutable std::recursive_mutex lock_;
  std::shared_ptr<const PlanProgram> next_;  // to be adopted
  std::shared_ptr<const PlanProgram> program_;
  std::uint32_t thread_ = 0;        // whose ops are followed (thread_of_work())
  plan::OpIndex place_ = kNowhere;  // the op that comes next
  // By thread_of_work(): the key of the newest op that read a storage of the pool that is not small.
  std::unordered_map<std::uint32_t, std::uint64_t> last_keys_;
  bool at_border_ = false;             // mark_step() was called, and no op on what can move has begun since
  bool handed_back_ = true;            // nothing is left on tape that the program may need
  std::uint64_t steps_at_border_ = 0;  // counts_.steps at the last border: mark_step(), note_step_end()
  std::uint64_t lost_at_border_ = 0;   // lost_steps_ at the last note_step_end()
  bool prepared_ = false;              // the actions before the op at place_ are carried out
  bool in_op_ = false;                 // the op at place_ runs
  bool in_stray_ = false;              // an op runs that is not the one at place_ and reads nothing that can move
  std::uint64_t stray_key_ = 0;        // the key of that stray op
  bool follows_one_ = false;           // the step before this one was followed too
  std::vector<StorageUse> inputs_;     // of the op that runs
  bool blanks_will_do_ = false;        // the op that runs touches bytes whose content it does not use
  std::uint64_t rescued_before_ = 0;
  std::function<void(bool ended)> step_hook_;
  PlanCounts counts_;
  std::atomic<bool> active_{false};  // there is a plan, or one to adopt
  std::atomic<bool> proved_{false};  // a step ran as this plan says
  std::atomic<std::uint64_t> lost_steps_{0};

  // Recomputes for a thread that waits at a faulting instruction, where no op may run.
  struct Helper;
  std::unique_ptr<Helper> helper_;
};

}  // namespace ullage::runtime
