// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that moves the program's bytes, where there is somewhere to move them to: torch's ops joined with the pager, the
// plan that is followed, and who makes one. A session has one where its device has a tier below it.

#include "ullage/runtime/following.h"
#include "ullage/runtime/paging.h"
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
#include <optional>

namespace ullage::runtime {

class PlannedPaging final {
 public:
  // Of the session. All must live for ever, like this itself.
  struct Parts {
    const Session::Settings& settings;
    BudgetedDevice& device;
    store::Store& store;
    store::Pager& pager;
    Pool& pool;
    Charges& charges;
    std::function<trace::ProcessFigures()> figures;
  };
  explicit PlannedPaging(Parts parts);

  // Puts the handler of faults in, and starts the threads that move.
  void start(std::function<void(const store::Pager::FaultAnswer&)> give_up);

  // Who is to be told of ops and saved tensors, outermost first; may be nobody.
  std::vector<OpListener*> before_the_recorder();
  std::vector<SavedListener*> saves() {
    return paging_ ? std::vector<SavedListener*>{&*paging_} : std::vector<SavedListener*>{};
  }
  // Records for planning; null: no plan is made.
  Recorder* observer() { return planning_ ? &planning_->observer() : nullptr; }

  // By the pool: before and after others hear of a new storage; and of one that is given back (PoolListener::freeing).
  void allocating();
  void allocated();
  bool freeing(Address at, bool may_stay);

  // The program says that a step ends; and once a step, anywhere between two ops, where it never says so.
  void mark_step();
  void look_again();
  void write_figures(store::LedgerSlot& slot) const;
  // As Planning::give_way().
  bool planning_gives_way() { return planning_ && planning_->give_way(); }

  void after_fork_in_child();

 private:
  void adopt_plan_file();
  Planning::Settings planning_settings();
  void let_the_evictor_in();

  const Parts parts_;
  // None where a thread evicts all the time (Session::Stress::Thread): there faults alone bring things back.
  std::optional<PlanFollower> follower_;
  std::optional<Paging> paging_;
  std::optional<Planning> planning_;            // none: no plan is made
  std::atomic<std::uint64_t> evict_rounds_{0};  // these two: of that thread
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace ullage::runtime
