// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds the three parts that decide which of the program's bytes move. They are Paging, which calls the pager for
// torch's ops, the follower of a plan, and the planner. A session has one of these if its device has a tier below it to
// move bytes to.

#include "ullage/runtime/following.h"
#include "ullage/runtime/paging.h"
#include "ullage/runtime/plan/cast_choice.h"
#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/runtime/plan/planning.h"
#include "ullage/runtime/pool/budgeted_device.h"
#include "ullage/runtime/pool/charges.h"
#include "ullage/runtime/pool/pool.h"
#include "ullage/runtime/session.h"
#include "ullage/store/ledger.h"
#include "ullage/store/pager.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace ullage::runtime {

class PlannedPaging final {
 public:
  // Parts of the session. All must live for ever, like this object.
  struct Parts {
    const Session::Settings& settings;
    BudgetedDevice& device;
    store::Store& store;
    store::Pager& pager;
    Pool& pool;
    Charges& charges;
    std::function<trace::ProcessFigures()> figures;
  };
  // If the settings name a plan's file that cannot be followed, warns and follows none.
  explicit PlannedPaging(Parts parts);

  // Installs the handler of page faults if the device heals them, and starts the threads that move bytes. `give_up`: as
  // for install_fault_handler().
  void start(std::function<void(const store::Pager::FaultAnswer&)> give_up);

  // The session's listeners. before_the_recorder(): for ops, outermost first; the recorder comes inside them. saves():
  // for saved tensors. Either list may be empty.
  std::vector<OpListener*> before_the_recorder();
  std::vector<SavedListener*> saves() {
    return paging_ ? std::vector<SavedListener*>{&*paging_} : std::vector<SavedListener*>{};
  }
  // The recorder that observes steps for planning; null: no plan is made.
  Recorder* observer() { return planning_ ? &planning_->observer() : nullptr; }

  // The session calls allocating() before its other parts hear of a new storage, and allocated() after that. freeing():
  // as in PoolListener.
  void allocating();
  void allocated();
  bool freeing(Address at, bool may_stay);

  // mark_step(): the program reports that a step ended. optimizer_was_called(): a step seems to have ended, judged by
  // the calls of optimizers; only for programs that never report steps.
  void mark_step();
  void optimizer_was_called();
  void write_figures(store::LedgerSlot& slot) const;
  // As Session::casts().
  bool casts() const { return cast_choice_ && cast_choice_->casts(); }
  // As Planning::give_way().
  bool planning_gives_way() { return planning_ && planning_->give_way(); }

  void after_fork_in_child();
  void say_goodbye();  // as the process ends

 private:
  void adopt_plan_file();
  Planning::Settings planning_settings();
  void cast_changed(bool casts);
  void let_the_evictor_in();

  // What a card's driver was asked and what the pager moved: so far, or within a step.
  struct StepMoves {
    store::DriverCalls calls{};
    Bytes away, back;
  };
  StepMoves moves_so_far() const;
  void note_planned_step(bool ended);

  const Parts parts_;
  // Both are empty under Session::Stress::Thread, where page faults alone restore storages.
  std::optional<PlanFollower> follower_;
  std::optional<Paging> paging_;
  std::optional<CastChoice> cast_choice_;       // none: nobody asked for one, or no plan is made
  std::optional<Planning> planning_;            // none: no plan is made
  std::atomic<std::uint64_t> evict_rounds_{0};  // this and the next are for Session::Stress::Thread
  std::atomic<std::uint64_t> allocations_{0};
  mutable std::mutex step_moves_lock_;  // guards the next two
  StepMoves step_began_;                // as the step that is followed began
  StepMoves planned_step_;              // within the last one that ran as planned
};

}  // namespace ullage::runtime
