// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds programs that take memory faster than pools can give it up. A process with a pool writes tensors out at the
// rate of the disk; a compiler that it started takes 150 MiB in 0.2 s. The launcher stops such a program (SIGSTOP)
// before it takes what is not there, and lets it go on (SIGCONT) when the pools have made room. If the pools cannot
// give enough for all that grow, programs take turns. If the pools have nothing left to give, a program may grow up to
// the budget. There it is stopped, and if no room comes the run is refused. Edit this if programs pass the budget, or
// wait for room that is there.

#include "ullage/store/ledger.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::cli {

// A process of the tree that runs a program of its own and has no pool: nothing makes it wait but a signal.
struct Program {
  std::int32_t pid = 0;
  Bytes resident;
};

class ProgramHolds final {
 public:
  using Clock = std::chrono::steady_clock;
  // The room that pools make for a stopped program. While it has not used it, they leave it alone. It goes on when at
  // least kLeastRoom is there, because pools may stay some MiB above what they are asked to come down to.
  static constexpr Bytes kRoom = 32_MiB, kLeastRoom = 16_MiB;
  // A smaller program is not held. The budget's margin is for its growth.
  static constexpr Bytes kSmall = 8_MiB;
  // Growth is noted in steps of at least this size, so that a page more stops nobody.
  static constexpr Bytes kStep = 1_MiB;
  // For how long a program is held if the pools make no room. Then it goes on and may use the margin. No other one is
  // held for room before there is room again.
  static constexpr std::chrono::milliseconds kLongest{2000};
  // For how long a program waits for its turn. Then it needs none any more, because others may wait for it. It also
  // waits that long at the edge.
  static constexpr std::chrono::milliseconds kLongestTurn{30000};
  // A program stands at the edge if less than this is left of the budget, the margin included, or less than twice what
  // it took since the last look.
  static constexpr Bytes kEdge = 4_MiB;
  // After a longer time without a look, nobody knows whether there was room meanwhile.
  static constexpr std::chrono::milliseconds kGap{1000};
  // For how long room is kept for a program that does not grow, and for how long such a program has its turn.
  static constexpr std::chrono::milliseconds kKept{500};

  // The page must outlive the object. `longest_turn`: only tests change it.
  explicit ProgramHolds(store::LedgerPage& page, std::chrono::milliseconds longest_turn = kLongestTurn)
      : page_(page), longest_turn_(longest_turn) {}
  // Lets all programs go on.
  ~ProgramHolds();
  ProgramHolds(const ProgramHolds&) = delete;
  ProgramHolds& operator=(const ProgramHolds&) = delete;

  // Stops the programs that would use up the budget's margin before the next look, and lets those go on for which there
  // is room. Writes LedgerPage::room_for_programs, ::programs_grow and ::programs_held_us. While a process is about to
  // be refused a request, it is served first, so no room is kept. `programs`: all there are. `held`: what all processes
  // hold.
  void look(const std::vector<Program>& programs, Bytes held, Clock::time_point now = Clock::now());
  // Lets those go on that were held for kLongest, or waited for their turn for kLongestTurn. For when it is not known
  // what the processes hold.
  void let_overdue_go_on(Clock::time_point now = Clock::now());
  // Lets all programs go on that are stopped, and stops none for kKept. For when a signal arrived: a stopped program
  // would not receive it, and one that goes on needs a moment to handle it.
  void let_all_go_on(Clock::time_point now = Clock::now());

  // The budget is too small for what programs take.
  struct TooLittle {
    std::int32_t pid = 0;  // the program that has stood at the edge for kLongestTurn
    Bytes resident;        // of it
    Bytes held;            // by all processes
    Bytes needed;          // at least: how much more it would take is not known
  };
  std::optional<TooLittle> too_little() const { return too_little_; }
  // Whether looks should come more often: a program grows, and less than kRoom is left.
  bool is_near_the_edge() const { return near_the_edge_; }

 private:
  struct Known {
    std::int32_t pid = 0;
    Bytes resident{};           // when it was last seen to have grown by kStep, or to hold less
    Bytes grown{};              // since the look before
    Bytes room{};               // what it may still take of the room that was made for it
    Clock::time_point grew{};   // when it was last seen to have grown
    Clock::time_point since{};  // when it was stopped, or when its turn came after that
    Clock::time_point stopped_at{};
    int process = -1;        // a descriptor (pidfd) while it is stopped, so that no other process gets the signal
    bool needs_turn = true;  // false: it has waited for kLongestTurn
    bool waits_for_turn = false;
    bool at_edge = false;  // it is stopped there
    bool is_stopped() const { return process >= 0; }
    // It grows, or it would if there were room.
    bool grows(Clock::time_point now) const {
      if (resident < kSmall || at_edge) return false;
      return is_stopped() ? !waits_for_turn : now - grew < kKept;
    }
  };
  // Whether it may grow beside the older programs that grow now. Each is expected to become as large as the largest
  // program so far (LedgerPage::largest_program), because compilers that a program starts are alike. The oldest one
  // always may.
  bool has_its_turn(const Known& program, Clock::time_point now) const;
  void note(const Program& program, Clock::time_point now);
  enum class Why { Room, Turn, Edge };
  void stop(Known& program, Why why, Clock::time_point now);
  void see_who_stands_at_the_edge(Bytes held, Clock::time_point now);
  void go_on(Known& program, Clock::time_point now);
  void forget_those_not_in(const std::vector<Program>& programs, Clock::time_point now);

  store::LedgerPage& page_;
  const std::chrono::milliseconds longest_turn_;
  std::vector<Known> known_;
  Bytes room_{};          // for programs that grow, if the pools gave what they can; as of the last look
  bool in_vain_ = false;  // a program was held for room for kLongest, and there was no room since
  bool near_the_edge_ = false;
  Clock::time_point last_look_{};
  Clock::time_point stops_none_until_{};
  std::optional<TooLittle> too_little_;
};

}  // namespace ullage::cli
