// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/host_guard.h"

#include "ullage/cli/machine_memory.h"
#include "ullage/store/process_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

namespace ullage::cli {
namespace {

using report::DryReport;

// Returns what a process holds that the kernel cannot drop.
Bytes held_by(std::int32_t pid) {
  return saturating_sub(store::resident_pages_of(pid).all(), store::file_pages_of(pid)) + store::swapped_of(pid);
}

// Returns the words that the process was started with.
std::string command_of(std::int32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
  std::string command, word;
  while (std::getline(in, word, '\0')) command += (command.empty() ? "" : " ") + word;
  return command;
}

}  // namespace

HostGuard::HostGuard(MachineRoots roots, std::filesystem::path answers)
    : roots_(std::move(roots)), answers_(std::move(answers)), groups_(memory_groups(roots_)) {}

bool HostGuard::look(std::int32_t root, Clock::time_point now) {
  const std::optional<Bytes> left = memory_left(groups_, roots_);
  if (!left) return false;
  if (!first_left_) first_left_ = last_left_ = left_at_question_ = *left;
  const Bytes needed = needed_at(*left, now);
  if (asked_) {
    const bool answered = has_answered();
    if (!answered && *left >= needed / 2) return false;
    const bool is_last = asked_->scarce || !answered;  // else the answer is of an earlier moment
    note_growth();
    if (*left < needed && is_last) return fills(measure(root), *left);
  }
  const bool scarce = *left < needed;
  if (scarce && now < not_before_) return false;
  if (scarce || saturating_sub(left_at_question_, *left) >= *first_left_ / kGrowthPart) {
    if (scarce && !took_half(*left)) {
      not_before_ = now + kReach;
    } else {
      ask(measure(root), *left, scarce);
    }
  }
  return false;
}

// Returns how many bytes must be left, or else the program is to be ended.
Bytes HostGuard::needed_at(Bytes left, Clock::time_point now) {
  const std::chrono::duration<double> since = now - std::exchange(last_look_, now);
  const Bytes taken = saturating_sub(std::exchange(last_left_, left), left);
  const double reach = static_cast<double>(taken.count) * std::chrono::duration<double>(kReach).count();
  const Bytes floor = std::min(kFloor, *first_left_ / kFloorPart);
  return floor + Bytes{static_cast<std::uint64_t>(reach / std::max(since.count(), 1e-3))};
}

// Pages that several processes share count in each of them.
HostGuard::Held HostGuard::measure(std::int32_t root) {
  Held held;
  held.largest = root;
  for (const std::int32_t pid : store::process_tree(root)) {
    const Bytes one = held_by(pid);
    if (one > held.most) held.most = one, held.largest = pid;
    held.all += one;
  }
  return held;
}

// Did this process and all that it started take half of what is gone? Programs that run side by side (advise) count
// together, and a page that processes share counts once.
bool HostGuard::took_half(Bytes left) const {
  Bytes held;
  for (const std::int32_t pid : store::process_tree(::getpid()))
    held += store::proportional_of(pid) + store::swapped_of(pid);
  return held >= saturating_sub(*first_left_, left) / 2;
}

void HostGuard::ask(const Held& held, Bytes left, bool scarce) {
  left_at_question_ = left;
  asked_ = Asked{held.largest, LineQuestion(held.largest, answers_),
                 saturating_sub(held.all, std::exchange(held_, held.all)), scarce};
}

bool HostGuard::has_answered() {
  return !asked_->question.was_asked() || asked_->question.answer() || !store::holds_memory(asked_->process);
}

bool HostGuard::fills(const Held& held, Bytes left) {
  if (!took_half(left)) return false;
  found_.left = left, found_.most = most_there_is(read_machine_memory(roots_)).value_or(Bytes{});
  found_.process = held.largest, found_.command = command_of(held.largest);
  found_.held = held.most, found_.files = store::file_pages_of(held.largest);
  filled_ = found_;
  return true;
}

void HostGuard::note_growth() {
  const Bytes grown = asked_->grown;
  found_.place = asked_->question.answer().value_or(DryReport::Place{});
  asked_.reset();
  if (found_.place.file.empty()) return;
  for (DryReport::Growth& one : found_.growth) {
    if (one.place == found_.place) return void(one.bytes += grown);
  }
  found_.growth.push_back({found_.place, grown});
}

}  // namespace ullage::cli
