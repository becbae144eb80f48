// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries a plan out: follows the program op by op from the first op of a step on, by key and dataflow, and does before
// and after each op what the plan says. Where the program does something else, what is dropped is made again at once,
// the pager decides on demand until a step begins.

#include "ullage/runtime/ops/op_call.h"
#include "ullage/runtime/plan/tape.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

namespace ullage::runtime {

struct PlanCounts {
  std::uint64_t plans = 0;       // adopted: a step under them began
  std::uint64_t steps = 0;       // that ran as planned from their first op to their last
  std::uint64_t deviations = 0;  // times that the program left its planned step in its midst
  std::uint64_t rescues = 0;     // in such steps behind another such: what was evicted, recomputed or missed on demand
  Bytes peak;                    // most bytes present in such steps, as counted
  TapeCounts tape;
};

class PlanFollower final : public OpListener, public store::Recomputer {
 public:
  // All must live for ever, like the follower itself.
  PlanFollower(store::Store& store, store::Pager& pager, Pool& pool);
  ~PlanFollower() override;

  // From the next step on. Any thread.
  void adopt(std::shared_ptr<const PlanProgram> program);
  // A plan was adopted, and steps go on without it: they are others by now.
  bool lost_for_good() const { return lost_steps_.load() >= kPatience; }

  // Outermost of the listeners: what an op needs is there when the pager looks.
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  // From the next op on nothing is planned, until another plan is adopted. On the thread that is followed.
  void suspend();

  // The program says that a step ends here.
  void mark_step();

  // By the pool, from any thread: PoolListener::freeing.
  bool freeing(Address at, bool may_stay);
  // By the pager: somebody needs what is dropped.
  bool recompute(Address at, bool at_fault) override;

  // This thread's ops are met as planned: what autograd unpacks comes back before the op that reads it.
  bool leads_this_thread() const;

  // The child's ops are not followed. Nothing is dropped then: the pager has seen to that.
  void after_fork_in_child() { active_.store(false); }

  PlanCounts counts() const;
  std::shared_ptr<const PlanProgram> program() const;

 private:
  static constexpr std::uint64_t kPatience = 6;  // a step counts twice where the program tells its end
  static constexpr plan::OpIndex kNowhere = plan::kNone;

  void meet(OpCall& call);
  bool is_next(std::uint64_t key, std::span<const StorageUse> inputs);
  bool begins_step(std::uint64_t key);
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
  Tape tape_;
  mutable std::recursive_mutex lock_;
  std::shared_ptr<const PlanProgram> next_;  // to be adopted
  std::shared_ptr<const PlanProgram> program_;
  std::uint32_t thread_ = 0;           // whose ops are followed (thread_of_work())
  plan::OpIndex place_ = kNowhere;     // the op that comes next
  bool at_border_ = false;             // the program told one, and no op has begun since
  bool handed_back_ = true;            // nothing is left on tape that the program may need
  std::uint64_t steps_at_border_ = 0;  // that were finished, when the program told a border last
  bool in_op_ = false;                 // the op at place_ runs
  bool follows_one_ = false;           // the step before it was followed too
  std::vector<StorageUse> inputs_;     // of the op that runs
  bool blanks_will_do_ = false;        // that op is known to touch bytes whose content it does not use
  std::uint64_t rescued_before_ = 0;
  PlanCounts counts_;
  std::atomic<bool> active_{false};  // there is a plan, or one to adopt
  std::atomic<std::uint64_t> lost_steps_{0};

  // Recomputes for who stands at a faulting instruction, where no op may run.
  struct Helper;
  std::unique_ptr<Helper> helper_;
};

}  // namespace ullage::runtime
