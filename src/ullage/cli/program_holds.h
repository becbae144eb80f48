// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds programs up that take memory faster than pools can give it up. A process with a pool writes tensors out at the
// rate of the disk; a compiler that it started takes 150 MiB in 0.2 s. Such a program is stopped (SIGSTOP) before it
// takes what is not there, and goes on (SIGCONT) when the pools have made room. Edit this if programs pass the budget,
// or wait for room that is there.

#include "ullage/store/ledger.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace ullage::cli {

// A process of the tree that runs a program of its own and has no slot: nothing makes it wait but a signal.
struct Program {
  std::int32_t pid = 0;
  Bytes resident;
};

class ProgramHolds final {
 public:
  using Clock = std::chrono::steady_clock;
  // The room that pools make for a program at a time. While it has not used it, they leave it alone. It goes on when at
  // least kLeastRoom is there, because pools may stay some MiB above what they are asked to come down to.
  static constexpr Bytes kRoom = 32_MiB, kLeastRoom = 16_MiB;
  // A smaller program is not held. The budget's margin is for its growth.
  static constexpr Bytes kSmall = 8_MiB;
  // For how long a program is held if the pools make no room. Then it goes on, and may pass the budget.
  static constexpr std::chrono::milliseconds kLongest{2000};
  // For how long room is kept for a program that does not grow.
  static constexpr std::chrono::milliseconds kKept{500};

  // The page must outlive the object.
  explicit ProgramHolds(store::LedgerPage& page) : page_(page) {}
  // Lets all programs go on.
  ~ProgramHolds();
  ProgramHolds(const ProgramHolds&) = delete;
  ProgramHolds& operator=(const ProgramHolds&) = delete;

  // Stops the programs that would pass the budget before the next look, and lets those go on for which there is room.
  // Writes LedgerPage::room_for_programs and ::programs_held_us. `programs`: all there are. `held`: what all
  // processes of the tree hold.
  void look(const std::vector<Program>& programs, Bytes held, Clock::time_point now = Clock::now());

 private:
  struct Known {
    std::int32_t pid = 0;
    Bytes resident{};            // at the last look
    Bytes room{};                // what it may still take of the room that was made for it
    Clock::time_point grew{};    // when it was last seen to have grown
    Clock::time_point since{};   // when it was stopped
    int process = -1;            // a descriptor (pidfd) while it is stopped, so that no other process gets the signal
    bool in_vain = false;        // it was held for kLongest, and there was no room since
    bool is_stopped() const { return process >= 0; }
  };
  Known& known(const Program& program);
  void stop(Known& program, Clock::time_point now);
  void go_on(Known& program, Clock::time_point now);
  void forget_those_not_in(const std::vector<Program>& programs, Clock::time_point now);

  store::LedgerPage& page_;
  std::vector<Known> known_;
};

}  // namespace ullage::cli
