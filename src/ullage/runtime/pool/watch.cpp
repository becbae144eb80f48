// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/watch.h"

#include "ullage/base/sizes.h"
#include "ullage/base/threads.h"
#include "ullage/runtime/pool/fault_handler.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace ullage::runtime {
namespace {

// Imports make the outside grow in bursts. Before the next look it may grow this many times as much as since the last
// look.
constexpr std::uint64_t kGrowthToCome = 16;
constexpr std::uint64_t kPeakEvery = 8;         // looks; one of so many reads the peak, which costs ten times a look
constexpr std::uint64_t kWorthAWarning = 1000;  // steps left; with more there is no warning

// The longest time that a thread waits for room, and the processor time after which the process has touched the bytes.
constexpr std::chrono::milliseconds kMostWaiting{1000};
constexpr std::chrono::milliseconds kTouchedWithin{250};

// Of all threads of the process.
std::chrono::nanoseconds processor_time() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

constexpr std::uint64_t kMostWaitingForOthersUs = 1'000'000;

std::uint64_t now_us() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count());
}

}  // namespace

Watch::Watch(store::Pager& pager, store::Budget& budget, Settings settings)
    : pager_(pager),
      budget_(budget),
      settings_(std::move(settings)),
      slot_(settings_.slot),
      step_began_us_(now_us()),
      last_outside_(budget.outside_beside_files()) {}

void Watch::start() {
  start_thread([this] {
    std::unique_lock lock(lock_);
    thread_ = std::this_thread::get_id();
    for (;;) {
      const std::uint64_t asked = asked_;
      lock.unlock();
      if (asked > answered_) pager_.missing();  // measures what stands outside now
      foresee();
      look(false);
      lock.lock();
      answered_ = asked;
      changed_.notify_all();
      changed_.wait_for(lock, settings_.between_looks, [this] { return asked_ > answered_; });
    }
  });
}

// A thread touches one block at a time, so its new one takes the place of its last one.
void Watch::make_way(Bytes bytes) {
  if (budget_.unlimited()) return;
  std::unique_lock lock(lock_);
  const std::thread::id self = std::this_thread::get_id();
  if (self == thread_ || thread_ == std::thread::id{}) return;
  std::erase_if(coming_, [self](const Coming& one) { return one.who == self; });
  coming_.push_back({self, bytes, std::nullopt, processor_time() + kTouchedWithin});
  const std::uint64_t mine = ++asked_;
  changed_.notify_all();
  changed_.wait_for(lock, kMostWaiting, [this, mine] { return answered_ >= mine; });
}

// Tells the budget how large the outside will soon be. An announcement ends by processor time, because a busy machine
// may let the thread wait before it touches anything.
void Watch::foresee() {
  const std::lock_guard lock(lock_);
  if (coming_.empty()) return;
  const std::chrono::nanoseconds now = processor_time();
  std::erase_if(coming_, [now](const Coming& one) { return one.until < now; });
  for (Coming& one : coming_) one.outside = one.outside.value_or(budget_.outside_beside_files());
  Bytes level = coming_.empty() ? Bytes{} : *coming_.front().outside;
  for (const Coming& one : coming_) level += one.bytes;
  budget_.foresee(level);
}

void Watch::look(bool final_look) {
  if (settings_.tree != nullptr && settings_.tree->share_pressure(pager_.under_pressure())) pager_.follow_from_now_on();
  if (slot_ != nullptr) slot_->looks_begun.fetch_add(1);
  const Bytes foreseen = growth_to_come_;
  Bytes given_back = pager_.trim(foreseen);
  growth_to_come_ = saturating_sub(budget_.outside_beside_files(), last_outside_) * kGrowthToCome;
  if (growth_to_come_ > foreseen) given_back += pager_.trim(growth_to_come_);
  if (slot_ != nullptr) slot_->looks_ended.fetch_add(1);
  last_outside_ = budget_.outside_beside_files();
  reassert_fault_handler();
  if (slot_ == nullptr) return;
  const store::StoreCounts counts = pager_.store().counts();
  const Bytes resident = counts.resident + budget_.outside();  // trim() has just measured the outside
  if (resident.count > slot_->rss_peak.load()) slot_->outside_at_peak.store(budget_.outside().count);
  slot_->rss.store(resident.count);
  store::raise_to(slot_->rss_peak, resident.count);
  slot_->outside.store(budget_.outside().count);
  slot_->pool_live.store(counts.live.count);
  slot_->pool_live_peak.store(counts.live_peak.count);
  slot_->pool_resident.store(counts.resident.count);
  slot_->pool_resident_peak.store(counts.resident_peak.count);
  slot_->movable.store(pager_.movable().count);
  slot_->given_back.fetch_add(given_back.count);
  write_moves();
  if (final_look || looks_++ % kPeakEvery == 0) check_breach();
}

void Watch::write_moves() {
  const store::PagerCounts moves = pager_.counts();
  const auto microseconds = [](Seconds time) { return static_cast<std::uint64_t>(time.count * 1e6); };
  slot_->spilled.store(moves.spilled.count);
  slot_->restored.store(moves.restored.count);
  slot_->spill_wait_us.store(microseconds(moves.waited));
  slot_->spill_background_us.store(microseconds(moves.background));
  slot_->spilled_now.store(moves.spilled_now.count);
  slot_->spilled_peak.store(moves.spilled_peak.count);
  slot_->cleaned.store(moves.written_ahead.count);
  slot_->saved_writes.store(moves.rewrites_avoided.count);
  slot_->page_faults_healed.store(moves.faults);
  slot_->files_let_go.store(moves.files_let_go.count);
  store::raise_to(slot_->unmovable, (pager_.store().counts().slabs + moves.foreign_peak).count);
  if (!moves.spill_failure.empty()) slot_->spill_message.set(moves.spill_failure);
  if (!pager_.under_pressure() || budget_.unlimited()) return;
  // The bytes outside the pool may have grown since the request was refused.
  const Bytes refused = settings_.refused_at_once ? settings_.refused_at_once() : Bytes{};
  if (refused > Bytes{}) store::raise_to(slot_->refused_least, budget_.least_with(refused).count);
  if (awaits_others()) {
    budget_.forget_needed();
    return;
  }
  store::raise_to(slot_->least_budget, budget_.note_least(pager_.take_at_once()).count);
}

// While ops of others are not followed yet, all that their pools hold counts, and the least budget would be too high.
bool Watch::awaits_others() {
  if (settings_.tree == nullptr || settings_.tree->others_are_followed()) {
    waiting_since_us_ = 0;
    return false;
  }
  if (waiting_since_us_ == 0) waiting_since_us_ = now_us();
  return now_us() - waiting_since_us_ < kMostWaitingForOthersUs;
}

void Watch::check_breach() {
  const Bytes peak = settings_.peak();
  store::raise_to(slot_->rss_peak, peak.count);
  if (budget_.unlimited() || peak <= budget_.stated()) return;
  const Bytes over = peak - budget_.stated();
  const bool first = slot_->over_budget.load() == 0;
  store::raise_to(slot_->over_budget, over.count);
  if (!first) return;
  const std::string text = fmt::format(
      "the process passed its budget of {} by {}: memory outside the pool is {}; {} were reserved for it at first",
      to_string(budget_.stated()), to_string(over), to_string(budget_.outside()),
      to_string(budget_.expected_at_start()));
  tell(text);
}

void Watch::mark_step() {
  count_step();
  check_growth(steps_ - 1);
}

void Watch::count_step() {
  if (settings_.outside_follows_steps) budget_.end_step();
  const std::uint64_t now = now_us();
  const std::uint64_t took = now - step_began_us_;
  step_began_us_ = now;
  if (slot_ != nullptr) {
    slot_->step_us[steps_ % store::LedgerSlot::kStepTimes].store(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(took, UINT32_MAX)));
    slot_->steps.store(steps_ + 1);
  }
  ++steps_;
}

void Watch::correct_steps(std::uint64_t total) {
  if (slot_ != nullptr && total < steps_) {
    for (auto& time : slot_->step_us) time.store(0);
  }
  steps_ = total;
  if (slot_ != nullptr) slot_->steps.store(total);
}

void Watch::check_growth(std::uint64_t step) {
  if (budget_.unlimited() || step < store::Budget::kFirstSteps) return;
  growth_.add(StepId{step}, budget_.outside_for_good());
  const Bytes needs = pager_.store().counts().live_peak;
  const Bytes outside = std::max(budget_.outside_for_good(), budget_.expected_outside());
  const Bytes room = saturating_sub(budget_.stated(), needs + outside + store::Budget::kMargin);
  const std::optional<std::uint64_t> left = growth_.steps_left(room);
  // Warns again only when less than half as many steps are left.
  if (!left || *left > kWorthAWarning || *left >= warned_steps_left_ / 2) return;
  warned_steps_left_ = *left;
  const std::string text = fmt::format(
      "memory outside the pool grows by {} a step and is {} now; the step's tensors need {}: {} steps are left until "
      "the budget of {} is full",
      to_string(*growth_.per_step()), to_string(budget_.outside_for_good()), to_string(needs), *left,
      to_string(budget_.stated()));
  tell(text);
}

// Writes a warning. The ledger keeps the words of a refusal, because the summary quotes them as such.
void Watch::tell(const std::string& text) {
  if (slot_ != nullptr && slot_->refused.load() == 0 && slot_->infeasible.load() == 0) slot_->message.set(text);
  if (settings_.warn) settings_.warn(text);
}

}  // namespace ullage::runtime
