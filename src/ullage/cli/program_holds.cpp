// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/program_holds.h"

#include "ullage/store/budget.h"
#include "ullage/store/process_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace ullage::cli {
namespace {

// What all pools could give up at most.
Bytes in_pools(const store::LedgerPage& page) {
  Bytes sum{};
  for (const store::LedgerSlot& slot : page.slots) {
    if (store::is_alive(slot)) sum += Bytes{slot.pool_resident.load()};
  }
  return sum;
}

bool somebody_lacks_memory(const store::LedgerPage& page) {
  return std::ranges::any_of(
      page.slots, [](const store::LedgerSlot& slot) { return store::is_alive(slot) && slot.lacking.load() > 0; });
}

bool somebody_has_a_pool(const store::LedgerPage& page) { return std::ranges::any_of(page.slots, store::is_alive); }

// A parent that put its child into a process group of its own (a shell with job control, `script`) may watch whether
// the child stops, and stop too or take it for ended. Others are not told.
bool may_be_stopped(std::int32_t pid) { return ::getpgid(pid) == ::getpgid(store::parent_of(pid)); }

}  // namespace

ProgramHolds::~ProgramHolds() { look({}, {}); }

void ProgramHolds::note(const Program& program, Clock::time_point now) {
  auto found = std::ranges::find(known_, program.pid, &Known::pid);
  if (found == known_.end()) {
    known_.emplace_back().pid = program.pid;
    found = known_.end() - 1;
  }
  const Bytes grown = saturating_sub(program.resident, found->resident);
  found->grown = grown >= kStep ? grown : Bytes{};
  if (grown >= kStep) found->grew = now;
  if (grown >= kStep || program.resident < found->resident) found->resident = program.resident;
  found->room = now - found->grew < kKept ? saturating_sub(found->room, found->grown) : Bytes{};
}

bool ProgramHolds::has_its_turn(const Known& program, Clock::time_point now) const {
  const Bytes largest{page_.largest_program.load()};
  if (!program.needs_turn) return true;
  Bytes expected = saturating_sub(largest, program.resident);
  bool is_oldest = true;
  for (const Known& older : known_) {
    if (&older == &program) break;
    if (!older.grows(now)) continue;
    is_oldest = false;
    expected += saturating_sub(largest, older.resident);
  }
  return is_oldest || expected <= room_;
}

void ProgramHolds::stop(Known& program, Why why, Clock::time_point now) {
  if (now < stops_none_until_ || !may_be_stopped(program.pid)) return;
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, program.pid, 0));
  if (process < 0) return;  // it has ended, or the kernel is older than 5.3
  if (::syscall(SYS_pidfd_send_signal, process, SIGSTOP, nullptr, 0) != 0) {
    ::close(process);
    return;
  }
  program.process = process;
  program.since = program.stopped_at = now;
  program.waits_for_turn = why == Why::Turn;
  program.at_edge = why == Why::Edge;
  program.room = {};
}

void ProgramHolds::go_on(Known& program, Clock::time_point now) {
  const int process = std::exchange(program.process, -1);
  ::syscall(SYS_pidfd_send_signal, process, SIGCONT, nullptr, 0);
  ::close(process);
  const auto held = std::chrono::duration_cast<std::chrono::microseconds>(now - program.stopped_at);
  page_.programs_held_us.fetch_add(static_cast<std::uint64_t>(held.count()));
  program.waits_for_turn = program.at_edge = false;
  program.grew = now;
}

void ProgramHolds::forget_those_not_in(const std::vector<Program>& programs, Clock::time_point now) {
  std::erase_if(known_, [&](Known& one) {
    if (std::ranges::find(programs, one.pid, &Program::pid) != programs.end()) return false;
    if (one.is_stopped()) go_on(one, now);
    return true;
  });
}

void ProgramHolds::let_overdue_go_on(Clock::time_point now) {
  for (Known& one : known_) {
    if (!one.is_stopped() || one.at_edge) continue;
    if (now - one.since < (one.waits_for_turn ? longest_turn_ : kLongest)) continue;
    if (one.waits_for_turn) {
      one.needs_turn = false;
    } else {
      in_vain_ = true;
    }
    go_on(one, now);
  }
}

void ProgramHolds::let_all_go_on(Clock::time_point now) {
  stops_none_until_ = now + kKept;
  for (Known& one : known_) {
    if (one.is_stopped()) go_on(one, now);
  }
}

// A program that the pools cannot help is stopped before it passes the budget. Without any pool nobody plans for a
// budget, so such a tree is only watched.
void ProgramHolds::see_who_stands_at_the_edge(Bytes held, Clock::time_point now) {
  const Bytes budget{page_.budget.load()};
  const Bytes left = saturating_sub(budget, held);
  const bool guards = budget > Bytes{} && somebody_has_a_pool(page_);
  const bool pools_can_give = in_pools(page_) >= kLeastRoom && !in_vain_;
  const bool had_a_gap = now - std::exchange(last_look_, now) >= kGap;
  near_the_edge_ = guards && left < kRoom && std::ranges::any_of(known_, [&](const Known& one) {
                     return one.resident >= kSmall && now - one.grew < kKept;
                   });
  for (Known& one : known_) {
    const bool stands = guards && left < std::max(kEdge, one.grown * 2);
    if (one.at_edge && (!guards || left >= kEdge)) go_on(one, now);
    if (one.is_stopped()) {
      if (had_a_gap && one.at_edge) one.since = now;
      if (one.at_edge && now - one.since >= longest_turn_ && !too_little_) {
        const Bytes more = std::max(saturating_sub(Bytes{page_.largest_program.load()}, one.resident), kLeastRoom);
        too_little_ = TooLittle{one.pid, one.resident, held, held + more + store::Budget::kMargin};
      }
    } else if (stands && !pools_can_give && one.grown > Bytes{} && one.resident >= kSmall) {
      stop(one, Why::Edge, now);
    }
  }
}

void ProgramHolds::look(const std::vector<Program>& programs, Bytes held, Clock::time_point now) {
  forget_those_not_in(programs, now);
  for (const Program& program : programs) note(program, now);
  const Bytes budget{page_.budget.load()};
  const bool may_hold = budget > Bytes{} && in_pools(page_) >= kLeastRoom;
  const Bytes cannot_go = saturating_sub(held, store::others_of(page_, nullptr).movable);
  room_ = budget > Bytes{} ? saturating_sub(budget, cannot_go + store::Budget::kMargin) : Bytes{UINT64_MAX};
  Bytes used = held + store::Budget::kMargin;
  for (const Known& one : known_) {
    if (!one.is_stopped()) used += std::max(one.room, one.grown * 2);  // the next look may be late
  }
  Bytes left = saturating_sub(budget, used);
  if (left >= kLeastRoom) in_vain_ = false;
  Bytes kept{};
  for (Known& one : known_) {
    const bool has_turn = has_its_turn(one, now);
    if (one.waits_for_turn && has_turn) {
      one.waits_for_turn = false;
      one.since = now;
    }
    if (!one.is_stopped()) {
      const bool lacks_room = may_hold && !in_vain_ && used > budget;
      if (one.grown > Bytes{} && one.resident >= kSmall && (lacks_room || !has_turn))
        stop(one, has_turn ? Why::Room : Why::Turn, now);
    } else if (!one.waits_for_turn && !one.at_edge && (left >= kLeastRoom || !may_hold)) {
      go_on(one, now);
      one.room = std::min(left, kRoom);
      left -= one.room;
    }
    if (!one.is_stopped()) kept += one.room;
  }
  let_overdue_go_on(now);
  see_who_stands_at_the_edge(held, now);
  const auto waits_for_room = [](const Known& one) { return one.is_stopped() && !one.waits_for_turn; };
  if (std::ranges::any_of(known_, waits_for_room)) kept += kRoom;
  const auto grows = [now](const Known& one) { return one.grows(now); };
  page_.programs_grow.store(static_cast<std::uint64_t>(std::ranges::count_if(known_, grows)));
  page_.room_for_programs.store(somebody_lacks_memory(page_) ? 0 : kept.count);
}

}  // namespace ullage::cli
