// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/session.h"

#include "ullage/base/sizes.h"
#include "ullage/runtime/fault_handler.h"
#include "ullage/runtime/following.h"
#include "ullage/runtime/paging.h"
#include "ullage/runtime/pool.h"
#include "ullage/runtime/python_process.h"
#include "ullage/runtime/recorder.h"
#include "ullage/runtime/threads.h"
#include "ullage/runtime/watch.h"
#include "ullage/store/os_pages.h"
#include "ullage/store/pager.h"
#include "ullage/store/process_memory.h"
#include "ullage/store/spill_file.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

namespace ullage::runtime {
namespace {

class Running;
Running* running = nullptr;

// Never destroyed: tensors of static lifetime are freed through the pool after every destructor has run.
class Running final : public Session, public PoolListener {
 public:
  Running(Settings settings, Bytes outside_start)
      : settings_(std::move(settings)),
        budget_(
            settings_.budget, outside_start, &store::resident_now,
            settings_.others ? settings_.others : [] { return Bytes{}; }) {}

  Status open() {
    Result<std::unique_ptr<store::Store>> made = store::Store::create(pages_, budget_);
    if (!made) return made.error();
    store_ = std::move(*made);
    if (settings_.spill.most > Bytes{} && !budget_.unlimited()) {
      Result<std::unique_ptr<store::SpillFile>> file = store::SpillFile::open(settings_.spill, {});
      if (!file) return file.error();
      spill_ = std::move(*file);
    }
    pager_ = std::make_unique<store::Pager>(*store_, spill_.get(), pager_settings());
    pool_ = std::make_unique<Pool>(*pager_, budget_, *this);
    if (!settings_.record_file.empty()) recorder_ = std::make_unique<Recorder>(recorder_settings());
    watch_ = std::make_unique<Watch>(*pager_, budget_, settings_.slot, settings_.warn);
    return success();
  }

  void begin() {
    running = this;
    pthread_atfork([] { running->pager_->before_fork(); }, [] { running->pager_->after_fork_in_parent(); },
                   [] { running->after_fork_in_child(); });
    std::atexit([] { running->say_goodbye(); });
    if (spill_ != nullptr) begin_paging();
    begin_following();
    pool_->install();
    watch_->look(true);
    watch_->start();
  }

  const store::Store& store() const override { return *store_; }
  Bytes budget() const override { return budget_.stated(); }
  void mark_step() override {
    watch_->mark_step();
    if (following_ != nullptr) following_->renew();
    if (recorder_ != nullptr) recorder_->mark_step();
    if (store::LedgerSlot* slot = watch_->slot())
      slot->threads.store(static_cast<std::uint64_t>(at::get_num_threads()));
  }
  store::LedgerSlot* slot() override { return watch_->slot(); }
  Recorder* recorder() override { return recorder_.get(); }
  const std::string& rehearsal() const override { return settings_.rehearsal; }

  void charge(Bytes bytes, const std::string& what) override {
    budget_.charge(bytes);
    pager_->trim();
    const store::StoreCounts counts = store_->counts();
    const Bytes missing = budget_.short_by(counts.resident);
    if (missing == Bytes{}) {
      if (recorder_ != nullptr) recorder_->charged(static_cast<std::int64_t>(bytes.count));
      return;
    }
    budget_.discharge(bytes);
    const Bytes limit = budget_.resident_limit(counts.resident);
    const store::Refusal refusal{
        store::Refusal::Reason::OverLimit, bytes, counts.live, counts.resident, limit, limit + missing};
    pool_->refuse(refusal, what);
  }
  void discharge(Bytes bytes) override {
    budget_.discharge(bytes);
    if (recorder_ != nullptr) recorder_->charged(-static_cast<std::int64_t>(bytes.count));
  }

  void allocated(Address at, Bytes bytes) override {
    if (following_ != nullptr) following_->follow_this_thread();
    if (recorder_ != nullptr) recorder_->allocated(at, bytes);
    if (settings_.stress == Stress::Thread) let_the_evictor_in();
  }
  void freeing(Address at) override {
    if (recorder_ != nullptr) recorder_->freed(at);
  }
  void refused(const store::Shortage& shortage, const std::string& op, const std::string& message) override {
    if (recorder_ != nullptr) recorder_->refused(shortage.refusal.requested);
    note_refusal(shortage, op, message);
  }

 private:
  store::Pager::Settings pager_settings() const {
    store::Pager::Settings settings;
    settings.evict_all = settings_.stress == Stress::Ops || settings_.stress == Stress::Strict;
    settings.heal_faults = settings_.stress != Stress::Strict;
    return settings;
  }

  Recorder::Settings recorder_settings() {
    Recorder::Settings settings;
    settings.file = settings_.record_file;
    settings.takes_are_told = !settings_.rehearsal.empty();
    settings.stop_after = settings_.stop_after;
    settings.end_process = settings_.end_process;
    settings.slot = settings_.slot;
    settings.warn = settings_.warn;
    settings.figures = [this] {
      const store::StoreCounts counts = store_->counts();
      trace::ProcessFigures figures;
      figures.peak = store::resident_peak();
      figures.outside_peak = std::max(budget_.outside_peak(), saturating_sub(figures.peak, counts.resident_peak));
      figures.pool_live_peak = counts.live_peak;
      figures.pool_resident_peak = counts.resident_peak;
      figures.threads = static_cast<std::uint32_t>(at::get_num_threads());
      return figures;
    };
    return settings;
  }

  void begin_paging() {
    install_fault_handler(*pager_, [this](const store::Pager::FaultAnswer& answer) { give_up(answer); });
    if (settings_.stress == Stress::Thread) {
      start_thread([this] {
        for (;; ++evict_rounds_) pager_->evict_all();
      });
    } else {
      paging_ = std::make_unique<Paging>(*pager_, *pool_);
      if (settings_.stress != Stress::None) pager_->follow_from_now_on();
    }
    start_thread([this] { pager_->run_in_background(); });
  }

  // The recorder is innermost, so that its times are the kernels'.
  void begin_following() {
    std::vector<OpListener*> ops;
    std::vector<SavedListener*> saves;
    if (paging_ != nullptr) {
      ops.push_back(paging_.get());
      saves.push_back(paging_.get());
      set_touch([this](Address begin, Bytes) { pager_->bring_back(begin); });
    }
    if (recorder_ != nullptr) {
      ops.push_back(recorder_.get());
      saves.push_back(recorder_.get());
    }
    if (ops.empty()) return;
    const bool at_once = recorder_ != nullptr;
    following_ = std::make_unique<Following>(std::move(ops), std::move(saves),
                                             [this, at_once] { return at_once || pager_->under_pressure(); });
    if (Status installed = following_->install(); !installed && settings_.warn)
      settings_.warn(installed.error().text());
    if (at_once) following_->follow_this_thread();
  }

  // Stress::Thread is no stress if the scheduler gives that thread no turn before a short program ends (seen on a busy
  // machine), so every 16th allocation waits until all was evicted once more; not for ever, as a forked child has no
  // such thread.
  void let_the_evictor_in() {
    if (++allocations_ % 16 != 0) return;
    const std::uint64_t before = evict_rounds_;
    for (int looks = 0; looks < 2000 && evict_rounds_ < before + 2; ++looks) usleep(50);
  }

  [[noreturn]] void give_up(const store::Pager::FaultAnswer& answer) {
    watch_->look(true);
    std::string text = "memory that was moved out cannot be brought back: " + answer.why;
    if (answer.at_once > Bytes{}) {
      const store::StoreCounts counts = store_->counts();
      const auto why = store::Refusal::Reason::OverLimit;
      store::Shortage missing;
      missing.refusal = {why, answer.at_once, counts.live, counts.resident, counts.limit, answer.at_once};
      missing.at_once = missing.pinned = answer.at_once;
      missing.can_move = true;
      text = "out of memory within the budget: " + pool_->message(missing, op_in_flight());
    }
    if (settings_.give_up) settings_.give_up(text, answer.at_once > Bytes{});
    std::abort();
  }

  void note_refusal(const store::Shortage& shortage, const std::string& op, const std::string& message) {
    store::LedgerSlot* slot = watch_->slot();
    if (slot == nullptr) return;
    slot->last_request.store(shortage.refusal.requested.count);
    slot->last_op.set(op);
    slot->message.set(message);
    slot->refused.fetch_add(1);
  }

  void after_fork_in_child() {
    pager_->after_fork_in_child();
    if (recorder_ != nullptr) recorder_->after_fork_in_child();
    watch_->leave_to_parent();
  }

  void say_goodbye() {
    watch_->look(true);
    if (recorder_ != nullptr) recorder_->finish();
    if (store::LedgerSlot* slot = watch_->slot()) slot->ended.store(1);
  }

  const Settings settings_;
  store::OsPages pages_;
  store::Budget budget_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::SpillFile> spill_;  // null: nothing is moved
  std::unique_ptr<store::Pager> pager_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Recorder> recorder_;    // null: nothing is recorded
  std::unique_ptr<Paging> paging_;        // null: nothing is moved, or faults alone bring things back
  std::unique_ptr<Following> following_;  // null: nobody wants to know of ops
  std::unique_ptr<Watch> watch_;
  std::atomic<std::uint64_t> evict_rounds_{0};  // these two: of Stress::Thread alone
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace

Result<Session*> Session::start(Settings settings) {
  ULLAGE_CHECK(running == nullptr, "a session runs in this process already");
  const Bytes held = store::resident_now();
  if (settings.slot != nullptr) settings.slot->outside_start.store(held.count);
  const Bytes least = store::Budget::least(held);
  if (settings.budget != Bytes{} && settings.budget < least) {
    return Error{
        Error::Kind::BadArgument,
        fmt::format("the budget of {} is below what the process needs before the first tensor: it holds {}, its "
                    "libraries will take up to {} more, and {} are margin; state at least {}",
                    to_string(settings.budget), to_string(held), to_string(store::Budget::kWarmUp),
                    to_string(store::Budget::kMargin), with_count(least)),
        "--memory"};
  }
  auto session = std::make_unique<Running>(std::move(settings), held);
  if (Status opened = session->open(); !opened) return opened.error();
  session->begin();
  return static_cast<Session*>(session.release());
}

Session* Session::current() { return running; }

}  // namespace ullage::runtime
