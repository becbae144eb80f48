// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/card_use.h"

#include "ullage/base/sizes.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ullage::cuda {
namespace {

// Are these totals of the same device? NVML counts all memory that is soldered on; the driver's total is up to a
// twentieth less on small cards. An instance of a divided card (MIG) has either all of the card or at most half of it.
bool is_same_total(Bytes nvml, Bytes driver) {
  const auto [less, more] = std::minmax(nvml, driver);
  return more - less <= more / 10;
}

// Opens NVML for the driver's card. BadArgument if NVML's total is that of another device.
Result<std::unique_ptr<Nvml>> nvml_for(Driver& driver, const std::string& library) {
  ULLAGE_TRY_VALUE(const std::string bus_id, driver.bus_id());
  ULLAGE_TRY_VALUE(const Driver::Memory memory, driver.memory());
  ULLAGE_TRY_VALUE(std::unique_ptr<Nvml> nvml, Nvml::open(bus_id, library));
  ULLAGE_TRY_VALUE(const Bytes total, nvml->total());
  if (!is_same_total(total, memory.total))
    return Error{Error::Kind::BadArgument,
                 "NVML reports a card of " + to_string(total) + ", the driver one of " + to_string(memory.total) +
                     " (an instance of a divided card)",
                 ""};
  return nvml;
}

const Nvml::Process* entry_of(std::uint32_t pid, const std::vector<Nvml::Process>& listed) {
  const auto found = std::find_if(listed.begin(), listed.end(), [pid](const auto& one) { return one.pid == pid; });
  return found == listed.end() ? nullptr : &*found;
}

bool is_one_process(const std::vector<Nvml::Process>& listed) {
  return !listed.empty() &&
         std::all_of(listed.begin(), listed.end(), [&](const auto& one) { return one.pid == listed.front().pid; });
}

}  // namespace

std::unique_ptr<CardUse> CardUse::of(Driver& driver, const std::string& nvml, Clock clock) {
  auto use = std::unique_ptr<CardUse>(new CardUse(driver, std::move(clock)));
  Result<std::unique_ptr<Nvml>> opened = nvml_for(driver, nvml);
  if (opened) {
    use->nvml_ = std::move(*opened);
    use->ask();
  } else {
    use->knowledge_.reason = opened.error().text();
  }
  return use;
}

Bytes CardUse::now() {
  if (nvml_ != nullptr) {
    const std::unique_lock asking(asking_, std::try_to_lock);  // no thread waits for another's question
    if (asking && clock_() >= next_question_) ask();
  }
  const Bytes others = this->others();  // before used(): what others take in between counts as this process's
  return saturating_sub(used(), others);
}

Bytes CardUse::others() const {
  const std::lock_guard lock(mutex_);
  return others_;
}

CardUse::Knowledge CardUse::knowledge() const {
  const std::lock_guard lock(mutex_);
  return knowledge_;
}

// Returns the used bytes of the card, whoever uses them.
Bytes CardUse::used() {
  const Result<Driver::Memory> memory = driver_.memory();
  const std::lock_guard lock(mutex_);
  if (memory) used_ = saturating_sub(memory->total, memory->free);
  return used_;
}

// Memory may be taken and given back while NVML is asked. So the smaller of the used bytes before and after counts.
// Then what was taken meanwhile counts as this process's, and what this process gave back does not count as others'.
void CardUse::ask() {
  const Bytes before = used();
  const Result<std::vector<Nvml::Process>> listed = nvml_->processes();
  const Bytes after = used();
  next_question_ = clock_() + kBetweenQuestions;
  const Found found = listed ? find(*listed) : Found{{Way::Unknown, listed.error().text()}, {}};
  const std::lock_guard lock(mutex_);
  knowledge_ = found.knowledge;
  if (found.knowledge.way != Way::Unknown) others_ = saturating_sub(std::min(before, after), found.own);
}

// NVML lists every process with a context on the card. So a single one is this process, and its pid in the list stays
// the same when others come.
CardUse::Found CardUse::find(const std::vector<Nvml::Process>& listed) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  Way way = Way::OwnEntry;
  const Nvml::Process* own = entry_of(pid, listed);
  if (own == nullptr) {
    way = Way::OnlyEntry;
    if (!outer_pid_ && is_one_process(listed)) outer_pid_ = listed.front().pid;
    if (outer_pid_) own = entry_of(*outer_pid_, listed);
  }
  if (own == nullptr)
    return {{Way::Unknown, "process " + std::to_string(pid) + " is not among the " + std::to_string(listed.size()) +
                               " that NVML lists"},
            {}};
  if (!own->used) return {{Way::Unknown, "NVML does not report how much a process holds"}, {}};
  return {{way, ""}, *own->used};
}

}  // namespace ullage::cuda
