// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes plans while the program runs. Once the pool nears its limit, two steps are observed. The second is planned in
// the background while the program runs on. When the plan is ready, it is followed from the beginning of the next step
// on. If there is no room for both, the program waits for the plan, about as long as a step takes. All of this starts
// again if the program's steps change, until 8 plans were made. It ends for good if no plan
// fits, or if making one fails or has no room. It also ends if the program twice needed the memory that planning takes.

#include "ullage/runtime/ops/kernel_facts.h"
#include "ullage/runtime/plan/cast_choice.h"
#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/runtime/pool/charges.h"
#include "ullage/runtime/record/recorder.h"

#include "ullage/plan/model/stands_on.h"

#include "ullage/store/ledger.h"
#include "ullage/store/pager.h"

#include <atomic>
#include <chrono>
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
    bool wait = false;                            // for tests: the program waits for its plan
    plan::StandsOn on;                            // on a card no kernels are probed, and plans use none of KernelFacts
    std::function<void()> synchronize;            // as Recorder::Settings::synchronize
    std::function<std::vector<store::LiveStorage>()> live;  // the pool's storages, now
    // reserve() reserves bytes outside the pool that planning is about to take, and give_back() ends that. Both empty:
    // nothing needs to be reserved, and the program runs meanwhile.
    std::function<Charges::PlanningRoom(Bytes)> reserve;
    std::function<void()> give_back;
    // Charges::limit_after_step(). Empty: the limit stays.
    std::function<Bytes(Bytes limit, Bytes more)> limit_after_step;
    // What decides which steps are cast; null: none is. It must live for ever.
    CastChoice* cast_choice = nullptr;
    std::function<void(bool casts)> cast_changed;  // called at the border where that changes; may be empty
  };

  // All must live for ever, like this object.
  Planning(store::Pager& pager, PlanFollower& follower, Settings settings);

  // The recorder that observes steps. It must get the same calls as any recorder: ops, saved tensors, storages.
  Recorder& observer() { return observer_; }

  // Called at each allocation while the pool is near its limit. Begins to observe, unless that or planning has begun
  // already or was given up, or a plan is followed.
  void begin();
  // In a forked child, which lacks the planning thread: observes and plans nothing.
  void after_fork_in_child();

  // Call it when the program reports that a step ended.
  void mark_step();
  // Call it when the program called an optimizer that ends a step. Observes again if the program's steps have changed
  // for good.
  void optimizer_was_called();
  // Called when the program lacks room. Stops planning and waits until its bytes are given back. False: planning holds
  // nothing, or did not stop within five seconds. Any thread may call but the planning one.
  bool give_way();
  // Call it as the process ends. Says why there was no plan, if tensors were moved and nothing else has said it.
  void say_goodbye();

 private:
  void look_again();
  void observe();
  void observed();
  void probe();
  void wait_at_exit();
  void stop();  // at the end of the process: stops planning and waits for that, at most five seconds
  struct NewPlan {
    std::shared_ptr<const PlanProgram> program;
    Bytes peak;       // of tensors
    double overhead;  // the time that it adds to a step, as a share of the step's
  };
  // Nothing: there is no plan to carry out, or planning was stopped. What comes next is settled then.
  std::optional<NewPlan> plan(const std::string& recording);
  std::optional<NewPlan> new_plan(const std::string& recording);  // throws if none can be made, or on a stop
  void go_on_without(const plan::Plan& made);
  void adopt(const NewPlan& made);
  bool is_exact() const;
  void choose_cast();
  void cast_from_here();
  void be_exact_from_here();
  void note_room(Bytes of_recording);
  void not_busy();
  void gave_way();

  store::Pager& pager_;
  PlanFollower& follower_;
  const Settings settings_;
  Recorder observer_;
  std::vector<std::uint64_t> step_ends_;  // Recorder::unrecorded_step_ends()
  enum class State { Idle, Observing, Planning, Following, GaveUp };
  std::atomic<State> state_{State::Idle};
  std::optional<KernelFacts> facts_;          // known from the first recording on that has convolutions or batch norms
  std::atomic<std::uint64_t> made_{0};        // plans so far, also those of steps that fit without one
  std::atomic<bool> adopted_{false};          // one of them was adopted
  std::shared_ptr<const PlanProgram> exact_;  // the plan of the exact step, if cast_choice may come back to it
  // The pool's limit when planning began, and the bytes of it that slabs and the ends of pages wasted at most.
  Bytes limit_, wasted_;
  std::vector<Bytes> kept_for_libraries_;
  std::atomic<int> gave_way_{0};  // how often
  std::chrono::steady_clock::time_point observed_from_;
  std::atomic<bool> stopping_{false};     // the planning thread is to end, without a plan
  std::atomic<bool> search_over_{false};  // the search is to end; true as well if stopping_ is
  std::mutex lock_;
  std::condition_variable changed_;
  bool busy_ = false;   // bytes are reserved for planning, or the planning thread runs
  bool ended_ = false;  // the process ends
  bool in_child_ = false;
};

}  // namespace ullage::runtime
