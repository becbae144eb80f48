// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a plan while the program runs: once the pool nears its limit two steps are observed, the second is planned in
// the background while the third runs, and the plan is followed from the border of the step after. Where the program's
// steps become others, it is done again.

#include "ullage/runtime/ops/kernel_facts.h"
#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/runtime/record/recorder.h"

#include "ullage/plan/model/stands_on.h"

#include "ullage/store/ledger.h"
#include "ullage/store/pager.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ullage::runtime {

class Planning final {
 public:
  struct Settings {
    std::function<trace::ProcessFigures()> figures;
    std::function<void(const std::string&)> say;  // a line for the person; may be empty
    bool wait = false;                            // the program waits for its plan; for tests
    plan::StandsOn on;                  // of a card: no kernels are probed, nothing rests on what they would say
    std::function<void()> synchronize;  // Recorder::Settings::synchronize
    std::function<std::vector<store::LiveStorage>()> live;  // of the pool, now
    // Bytes outside the pool that planning is about to take and gives back: is there room? May be empty: there is.
    std::function<bool(Bytes)> reserve;
    std::function<void()> give_back;
  };

  // All must live for ever, like this itself.
  Planning(store::Pager& pager, PlanFollower& follower, Settings settings);

  // The one who observes: to be told of ops, saves and the pool's events as any recorder.
  Recorder& observer() { return observer_; }

  // Ops are followed from now on.
  void begin();
  // The thread that plans is not here.
  void after_fork_in_child();

  // At each step's border that the program tells.
  void mark_step();
  // Once a step, anywhere between two ops: where the plan is lost for good, it is time to observe again.
  void look_again();
  // The program lacks room: what planning holds is given back, and this returns once it is. False: it holds nothing.
  // Any thread but the one that plans.
  bool give_way();

 private:
  void observe();
  void observed();
  void probe();
  void wait_at_exit();
  void stop();  // when the process ends: waits until no plan is made any more
  void plan(const std::string& recording);
  void adopt(const std::string& recording);
  void note_room();
  void not_busy();
  void gave_way();

  store::Pager& pager_;
  PlanFollower& follower_;
  const Settings settings_;
  Recorder observer_;
  enum class State { Idle, Observing, Planning, Following, GaveUp };
  std::atomic<State> state_{State::Idle};
  std::optional<KernelFacts> facts_;  // from the first plan on that has convolutions or batch norms
  std::uint64_t made_ = 0;            // plans so far
  // Of the pool, when planning began: its limit, and of that what stood between the tensors.
  Bytes limit_, wasted_;
  int gave_way_ = 0;                   // how often
  std::atomic<bool> stopping_{false};  // whoever plans is to end
  std::mutex lock_;
  std::condition_variable changed_;
  bool busy_ = false;   // bytes are reserved for planning, or the thread plans
  bool ended_ = false;  // the process ends
  bool in_child_ = false;
};

}  // namespace ullage::runtime
