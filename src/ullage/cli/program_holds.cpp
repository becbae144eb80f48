// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/program_holds.h"

#include "ullage/store/budget.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace ullage::cli {
namespace {

// Is there a pool that could make room?
bool pools_hold_memory(const store::LedgerPage& page) {
  return std::ranges::any_of(page.slots, [](const store::LedgerSlot& slot) {
    return store::is_alive(slot) && slot.pool_resident.load() > 0;
  });
}

}  // namespace

ProgramHolds::~ProgramHolds() { look({}, {}); }

ProgramHolds::Known& ProgramHolds::known(const Program& program) {
  const auto found = std::ranges::find(known_, program.pid, &Known::pid);
  if (found != known_.end()) return *found;
  Known& added = known_.emplace_back();
  added.pid = program.pid;
  return added;
}

void ProgramHolds::stop(Known& program, Clock::time_point now) {
  program.process = static_cast<int>(::syscall(SYS_pidfd_open, program.pid, 0));
  if (program.process < 0) return;  // it has ended, or the kernel is older than 5.3
  ::syscall(SYS_pidfd_send_signal, program.process, SIGSTOP, nullptr, 0);
  program.since = now;
}

void ProgramHolds::go_on(Known& program, Clock::time_point now) {
  const int process = std::exchange(program.process, -1);
  ::syscall(SYS_pidfd_send_signal, process, SIGCONT, nullptr, 0);
  ::close(process);
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - program.since);
  page_.programs_held_us.fetch_add(static_cast<std::uint64_t>(waited.count()));
  program.grew = now;
}

void ProgramHolds::forget_those_not_in(const std::vector<Program>& programs, Clock::time_point now) {
  std::erase_if(known_, [&](Known& one) {
    if (std::ranges::find(programs, one.pid, &Program::pid) != programs.end()) return false;
    if (one.is_stopped()) go_on(one, now);
    return true;
  });
}

void ProgramHolds::look(const std::vector<Program>& programs, Bytes held, Clock::time_point now) {
  forget_those_not_in(programs, now);
  const Bytes budget{page_.budget.load()};
  const bool may_hold = budget > Bytes{} && pools_hold_memory(page_);
  Bytes promised{};
  for (const Program& program : programs) {
    Known& one = known(program);
    const Bytes grown = saturating_sub(program.resident, std::exchange(one.resident, program.resident));
    if (grown > Bytes{}) one.grew = now;
    one.room = now - one.grew < kKept ? saturating_sub(one.room, grown) : Bytes{};
    const Bytes free = saturating_sub(budget, held + promised + store::Budget::kMargin);
    const bool has_room = free >= kLeastRoom;
    if (has_room) one.in_vain = false;
    if (one.is_stopped()) {
      const bool is_over = now - one.since >= kLongest;
      if (has_room || is_over || !may_hold) go_on(one, now);
      if (has_room) one.room = std::min(free, kRoom);
      if (is_over && !has_room) one.in_vain = true;
    } else if (may_hold && !one.in_vain && grown > Bytes{} && program.resident >= kSmall &&
               held + grown * 2 + store::Budget::kMargin > budget) {
      stop(one, now);
    }
    promised += one.is_stopped() ? kRoom : one.room;
  }
  page_.room_for_programs.store(promised.count);
}

}  // namespace ullage::cli
