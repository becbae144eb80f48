// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a thread that measures every few milliseconds what the process holds. It makes the pool give way when memory
// outside the pool grew, and writes the figures into the ledger. This header includes no torch.

#include "ullage/store/budget.h"
#include "ullage/store/ledger.h"
#include "ullage/store/outside_growth.h"
#include "ullage/store/pager.h"
#include "ullage/store/tree.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ullage::runtime {

class Watch final {
 public:
  struct Settings {
    store::LedgerSlot* slot = nullptr;             // where figures go; null: nowhere
    std::function<void(const std::string&)> warn;  // may be empty
    std::function<Bytes()> peak;                   // the most that the process held so far
    std::function<Bytes()> refused_at_once;      // Shortage::at_once of the last refused request, or zero; may be empty
    std::chrono::milliseconds between_looks{8};  // see BudgetedDevice::between_looks()
    store::Tree* tree = nullptr;                 // the others that share the budget; null: there are none
    bool outside_follows_steps = true;           // each step updates the reserve for the outside; not on a card
  };
  // The pager, the budget and all that the settings refer to must never be destroyed.
  Watch(store::Pager& pager, store::Budget& budget, Settings settings);

  // Starts the thread, by start_thread(). It gets no signals but those of faults, so a program's signal handlers run in
  // the program's threads, as before.
  void start();

  // One look now: trims the pool and updates the ledger. Only some looks read the peak; `final_look` always does.
  void look(bool final_look);

  // Call this when a step of the program ended. Notes its time, lets the reserve follow it (Budget::end_step()), and
  // warns if the outside grows so fast that few steps are left.
  void mark_step();
  // As mark_step(), but without the warning: for steps whose ends are not certain.
  void count_step();
  // There were `total` steps. If there are fewer than were counted, the times of those before are forgotten.
  void correct_steps(std::uint64_t total);
  std::uint64_t steps() const { return steps_; }

  // This thread of the program is about to touch `bytes` outside the pool, faster than looks come. Has the watch's
  // thread make the pool give way, and waits for that, kMostWaiting at most: the caller may hold what the watch needs.
  // For the same reason this call does not use the pager itself. Not in a forked child.
  void make_way(Bytes bytes);

  // In a forked child, which lacks the thread: writes no more figures, because they are the parent's.
  void leave_to_parent() { slot_ = nullptr; }

  store::LedgerSlot* slot() { return slot_; }

 private:
  // What one thread is about to touch.
  struct Coming {
    std::thread::id who;
    Bytes bytes;
    std::optional<Bytes> outside;    // Budget::outside_beside_files() when the thread asked; none: not measured yet
    std::chrono::nanoseconds until;  // processor time of the process by which the thread has touched the bytes
  };
  void foresee();
  void write_moves();
  void check_growth(std::uint64_t step);
  bool awaits_others();
  void check_breach();
  void tell(const std::string& text);

  store::Pager& pager_;
  store::Budget& budget_;
  const Settings settings_;
  store::LedgerSlot* slot_;
  store::OutsideGrowth growth_;
  std::uint64_t looks_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t step_began_us_ = 0;
  std::uint64_t warned_steps_left_ = UINT64_MAX;
  std::uint64_t waiting_since_us_ = 0;  // for others to follow their ops; 0: it does not wait
  Bytes last_outside_;                  // Budget::outside_beside_files() at the last look
  Bytes growth_to_come_;                // how much the outside may grow before the next look

  // Of make_way().
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Coming> coming_;  // one for each thread at most, the oldest first
  std::uint64_t asked_ = 0, answered_ = 0;
  std::thread::id thread_;  // the watch's
};

}  // namespace ullage::runtime
