// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread that looks every few milliseconds at what the process holds: it makes the pool give way when memory outside
// the pool grew, and writes the figures into the ledger. No torch here.

#include "ullage/store/budget.h"
#include "ullage/store/ledger.h"
#include "ullage/store/outside_growth.h"
#include "ullage/store/pager.h"

#include <chrono>
#include <functional>
#include <string>

namespace ullage::runtime {

class Watch final {
 public:
  struct Settings {
    store::LedgerSlot* slot = nullptr;             // where figures go; null: nowhere
    std::function<void(const std::string&)> warn;  // may be empty
    std::function<Bytes()> peak;                   // the most that the process held so far
    // Often enough for what grows between two looks to stay within the margin: 8 MiB in 8 ms is a gigabyte a second.
    std::chrono::milliseconds between_looks{8};
    bool outside_follows_steps = true;  // what is set aside for it becomes what steps show; not on a card
  };
  // All must live for ever.
  Watch(store::Pager& pager, store::Budget& budget, Settings settings);

  // Starts the thread, with all signals blocked in it, so that a program's handlers run where they ran before.
  void start();

  // One look now: trims the pool, updates the ledger. `final_look` reads the peak whatever the time.
  void look(bool final_look);

  // A step of the program ended: its time, and how the outside grew.
  void mark_step();
  // The same where it is not sure what a step is: its time alone.
  void count_step();

  // In a forked child: the figures are the parent's, the thread is not here.
  void leave_to_parent() { slot_ = nullptr; }

  store::LedgerSlot* slot() { return slot_; }

 private:
  void write_moves();
  void check_growth(std::uint64_t step);
  void check_breach();

  store::Pager& pager_;
  store::Budget& budget_;
  const Settings settings_;
  store::LedgerSlot* slot_;
  store::OutsideGrowth growth_;
  std::uint64_t looks_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t step_began_us_ = 0;
  std::uint64_t warned_steps_left_ = UINT64_MAX;
  Bytes last_outside_;    // at the last look
  Bytes growth_to_come_;  // of the outside, before the next, as that look lets expect
};

}  // namespace ullage::runtime
