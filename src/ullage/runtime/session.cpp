// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/session.h"

#include "ullage/base/sizes.h"
#include "ullage/base/threads.h"
#include "ullage/runtime/following.h"
#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/heap_scratch.h"
#include "ullage/runtime/ops/kernel_facts.h"
#include "ullage/runtime/ops/op_info.h"
#include "ullage/runtime/paging.h"
#include "ullage/runtime/plan/plan_figures.h"
#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/runtime/plan/planning.h"
#include "ullage/runtime/pool/budgeted_device.h"
#include "ullage/runtime/pool/fault_handler.h"
#include "ullage/runtime/pool/pool.h"
#include "ullage/runtime/pool/watch.h"
#include "ullage/runtime/python/python_process.h"
#include "ullage/runtime/record/recorder.h"
#include "ullage/store/pager.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

namespace ullage::runtime {
namespace {

class Running;
Running* running = nullptr;

// `held_once`: as Session::Settings.
Status enough_beside(Bytes budget, Bytes held, Bytes held_once, Bytes warm_up) {
  const Bytes least = store::Budget::least(held, warm_up), peak = held_once + store::Budget::kMargin;
  if (budget == Bytes{} || budget >= std::max(least, peak)) return success();
  if (peak > least) {
    return Error{
        Error::Kind::BadArgument,
        fmt::format("the budget of {} is below what the process needs before the first tensor: it held {} as "
                    "it was loaded, and {} are margin; state at least {}",
                    to_string(budget), to_string(held_once), to_string(store::Budget::kMargin), with_count(peak)),
        "--memory"};
  }
  return Error{Error::Kind::BadArgument,
               fmt::format("the budget of {} is below what the process needs before the first tensor: it holds {}, its "
                           "libraries will take up to {} more, and {} are margin; state at least {}",
                           to_string(budget), to_string(held), to_string(warm_up), to_string(store::Budget::kMargin),
                           with_count(least)),
               "--memory"};
}

// Never destroyed: tensors of static lifetime are freed through the pool after every destructor has run.
class Running final : public Session, public PoolListener {
 public:
  Running(Settings settings, std::unique_ptr<BudgetedDevice> device, Bytes outside_start)
      : settings_(std::move(settings)),
        device_(std::move(device)),
        outside_expected_(outside_start + device_->warm_up()),
        peak_at_start_(device_->held_peak()),
        budget_(
            settings_.budget, outside_start, device_->warm_up(), [this] { return device_->held(); }, settings_.tree) {}

  Status open() {
    ULLAGE_TRY_VALUE(store_, store::Store::create(device_->pages(), budget_));
    if (!budget_.unlimited()) {
      ULLAGE_TRY_VALUE(tier_, device_->open_tier(settings_.spill));
    }
    if (device_->is_card() && tier_ != nullptr) marks_ = std::make_unique<StorageMarks>();
    pager_ = std::make_unique<store::Pager>(*store_, tier_, pager_settings());
    pool_ =
        std::make_unique<Pool>(*pager_, budget_, *this, device_->device(), Pool::Card{marks_.get(), device_->work()});
    if (!settings_.record_file.empty()) recorder_ = std::make_unique<Recorder>(recorder_settings());
    watch_ = std::make_unique<Watch>(*pager_, budget_, watch_settings());
    return success();
  }

  void begin() {
    running = this;
    follow_device(device_->device());
    note_forks();
    std::atexit([] { running->say_goodbye(); });
    if (tier_ != nullptr) begin_paging();
    begin_following();
    set_step_ended([this] { note_step(); });
    if (!device_->is_card()) pool_->install();
    watch_->look(true);
    watch_->start();
  }

  const store::Store& store() const override { return *store_; }
  Bytes budget() const override { return budget_.stated(); }
  Bytes held() override { return device_->held(); }
  Pool& pool() override { return *pool_; }
  Status restate(Bytes stated) override {
    const Bytes outside = saturating_sub(device_->held(), store_->counts().resident);
    ULLAGE_TRY(enough_beside(stated, outside, /*held_once=*/{}, /*warm_up=*/{}));
    budget_.restate(stated);
    pager_->trim();
    if (stated == Bytes{} && recorder_ != nullptr) recorder_->finish();
    return success();
  }
  void mark_step() override {
    steps_are_told_ = true;
    watch_->mark_step();
    tell_of_plans();
    if (following_ != nullptr) following_->renew();
    if (recorder_ != nullptr) recorder_->mark_step();
    if (follower_ != nullptr) follower_->mark_step();
    if (planning_ != nullptr) planning_->mark_step();
    if (store::LedgerSlot* slot = watch_->slot())
      slot->threads.store(static_cast<std::uint64_t>(at::get_num_threads()));
  }
  store::LedgerSlot* slot() override { return slot_of_child_ != nullptr ? slot_of_child_ : watch_->slot(); }
  Recorder* recorder() override { return recorder_.get(); }
  const std::string& rehearsal() const override { return settings_.rehearsal; }

  void charge(Bytes bytes, const std::string& what) override {
    if (device_->is_card()) return;
    const Bytes missing = set_aside(bytes);
    if (missing == Bytes{}) {
      record_charge(static_cast<std::int64_t>(bytes.count));
      return;
    }
    const store::StoreCounts counts = store_->counts();
    const Bytes limit = budget_.resident_limit(counts.resident);
    const store::Refusal refusal{
        store::Refusal::Reason::OverLimit, bytes, counts.live, counts.resident, limit, limit + missing};
    pool_->refuse(refusal, what);
  }
  void discharge(Bytes bytes) override {
    if (device_->is_card()) return;
    budget_.discharge(bytes);
    record_charge(-static_cast<std::int64_t>(bytes.count));
  }

  bool grant(Bytes bytes) override { return set_aside(bytes) == Bytes{}; }
  void drop_idle() override { pager_->drop_idle(); }
  void captures(bool begin) override {
    if (begin) pager_->begin_capture();
    if (CardWork* work = device_->work()) work->captures(begin);
    if (!begin) pager_->end_capture();
  }

  void allocated(Address at, Bytes bytes) override {
    if (in_python_) prepare_python_later();
    if (planning_ != nullptr && pager_->under_pressure()) planning_->begin();
    if (following_ != nullptr) following_->follow_this_thread();
    if (recorder_ != nullptr) recorder_->allocated(at, bytes);
    if (planning_ != nullptr) planning_->observer().allocated(at, bytes);
    if (settings_.stress == Stress::Thread) let_the_evictor_in();
  }
  void freeing(Address at) override {
    if (marks_ != nullptr) marks_->forget(at);
    if (follower_ != nullptr) follower_->freeing(at);
    if (recorder_ != nullptr) recorder_->freed(at);
    if (planning_ != nullptr) planning_->observer().freed(at);
  }
  void refused(const store::Shortage& shortage, const std::string& op, const std::string& message) override {
    if (recorder_ != nullptr) recorder_->refused(shortage.refusal.requested);
    note_refusal(shortage, op, message);
  }

 private:
  // The pool makes room for what another takes. What is lacking for it; then nothing is set aside.
  Bytes set_aside(Bytes bytes) {
    budget_.charge(bytes);
    pager_->trim();
    const Bytes missing = budget_.short_by(store_->counts().resident);
    if (missing > Bytes{}) budget_.discharge(bytes);
    return missing;
  }

  store::Pager::Settings pager_settings() const {
    store::Pager::Settings settings;
    settings.evict_all = settings_.stress == Stress::Ops || settings_.stress == Stress::Strict;
    settings.heal_faults = device_->heals_faults() && settings_.stress != Stress::Strict;
    settings.notices_writes = device_->heals_faults();
    settings.libraries_take_blocks = device_->is_card();
    if (marks_ != nullptr) settings.moved = [this](Address at, StorageMarks::Moved what) { marks_->moved(at, what); };
    if (CardWork* work = device_->work()) settings.used = [work](Address at, Bytes size) { work->used(at, size); };
    if (store::Tree* tree = settings_.tree) settings.diverged = [tree](Bytes bytes) { tree->diverged(bytes); };
    return settings;
  }

  Watch::Settings watch_settings() {
    Watch::Settings settings;
    settings.slot = settings_.slot;
    settings.warn = settings_.warn;
    settings.peak = [this] { return device_->held_peak(); };
    // There what grows beside the pool asks first (grant()), and a look is a call of the driver.
    if (device_->is_card()) settings.between_looks = std::chrono::milliseconds{50};
    return settings;
  }

  Recorder::Settings recorder_settings() {
    Recorder::Settings settings;
    settings.file = settings_.record_file;
    settings.device = device_->device().str();
    settings.takes_are_told = !settings_.rehearsal.empty();
    settings.lines = in_python_;
    settings.after_steps = settings_.stop_after;
    if (device_->is_card()) settings.synchronize = [this] { device_->synchronize(); };
    settings.at_border = [this] { end_at_border(); };
    settings.slot = settings_.slot;
    settings.warn = settings_.warn;
    settings.figures = [this] { return process_figures(); };
    return settings;
  }

  trace::ProcessFigures process_figures() const {
    const store::StoreCounts counts = store_->counts();
    trace::ProcessFigures figures;
    figures.peak = device_->held_peak();
    figures.outside_peak = budget_.outside_peak();
    if (figures.peak > peak_at_start_) {  // it may have come and gone between two looks
      figures.outside_peak = std::max(figures.outside_peak, saturating_sub(figures.peak, counts.resident_peak));
    }
    figures.outside_expected = outside_expected_;
    figures.pool_live_peak = counts.live_peak;
    figures.pool_resident_peak = counts.resident_peak;
    figures.threads = static_cast<std::uint32_t>(at::get_num_threads());
    return figures;
  }

  // The recorded process ends where it was asked to: nothing of the program is waited for, its files are scratch.
  void end_at_border() {
    recorder_->write(trace::Take::End::StepBorder);
    if (settings_.slot != nullptr) settings_.slot->stopped_at_border.store(1);
    settings_.end_process();
  }

  void begin_paging() {
    if (device_->heals_faults()) {
      install_fault_handler(*pager_, [this](const store::Pager::FaultAnswer& answer) { give_up(answer); });
    }
    if (settings_.stress == Stress::Thread) {
      start_thread([this] {
        for (;; ++evict_rounds_) pager_->evict_all();
      });
    } else {
      follower_ = std::make_unique<PlanFollower>(*store_, *pager_, *pool_);
      paging_ = std::make_unique<Paging>(*pager_, *pool_, *follower_, device_->work());
      if (settings_.stress != Stress::None) pager_->follow_from_now_on();
      begin_planning();
    }
    start_thread([this] { pager_->run_in_background(); });
  }

  void begin_planning() {
    if (!settings_.plan_file.empty()) {
      adopt_plan_file();
    } else if (settings_.plans && settings_.stress == Stress::None && settings_.rehearsal.empty()) {
      Planning::Settings planning;
      planning.figures = [this] { return process_figures(); };
      planning.say = settings_.say;
      planning.wait = settings_.waits_for_plan;
      planning.live = [this] { return pool_->live(); };
      if (device_->is_card()) {
        planning.on = {plan::Kernels::Card, device_->least_movable()};
        planning.synchronize = [this] { device_->synchronize(); };
      } else {  // planning takes of the very memory
        planning.reserve = [this](Bytes bytes) { return reserve(bytes); };
        planning.give_back = [this] { budget_.discharge(std::exchange(reserved_, {})); };
      }
      planning_ = std::make_unique<Planning>(*pager_, *follower_, std::move(planning));
    }
  }

  void adopt_plan_file() {
    const Result<std::shared_ptr<PlanProgram>> given =
        read_program(settings_.plan_file, torch_version(), device_->device().str());
    if (!given) {
      if (settings_.warn) settings_.warn(given.error().text());
      return;
    }
    const KernelFacts facts = device_->is_card() ? KernelFacts{} : probe_kernels();
    if (!facts.batch_norm_applies) (*given)->apply_nothing();
    if (!facts.convolution_input_unread) (*given)->read_everything();
    follower_->adopt(*given);
    pager_->follow_from_now_on();
  }

  // Who carries a plan out is outermost, so that the pager finds what an op needs; the recorders are innermost, so that
  // their times are the kernels'.
  void begin_following() {
    std::vector<OpListener*> ops;
    std::vector<SavedListener*> saves;
    if (paging_ != nullptr) {
      ops.push_back(follower_.get());
      ops.push_back(paging_.get());
      saves.push_back(paging_.get());
      set_touch([this](Address begin, Bytes) { pager_->bring_back(begin); });
    }
    if (recorder_ != nullptr) {
      ops.push_back(recorder_.get());
      saves.push_back(recorder_.get());
    }
    if (planning_ != nullptr) {
      ops.push_back(&planning_->observer());
      saves.push_back(&planning_->observer());
    }
    if (ops.empty()) return;
    if (!device_->is_card()) ops.push_back(&heap_scratch_);  // innermost: what it charges is charged within the op
    // On a card an op that nobody announced is an error, not a fault to be healed.
    const bool at_once = recorder_ != nullptr || (paging_ != nullptr && device_->is_card());
    following_ = std::make_unique<Following>(std::move(ops), std::move(saves),
                                             [this, at_once] { return at_once || pager_->under_pressure(); });
    if (Status installed = following_->install(); !installed && settings_.warn)
      settings_.warn(installed.error().text());
    if (at_once) following_->follow_this_thread();
  }

  void record_charge(std::int64_t bytes) {
    if (recorder_ != nullptr) recorder_->charged(bytes);
    if (planning_ != nullptr) planning_->observer().charged(bytes);
  }

  // Nobody told it: good for counting, not for borders. Those are found in the ops themselves.
  void note_step() {
    if (steps_are_told_) return;
    watch_->count_step();
    tell_of_plans();
    if (planning_ != nullptr) planning_->look_again();
  }

  // Room beside what ops have needed at once so far; what is set aside for the outside and not used will do too.
  bool reserve(Bytes bytes) {
    const Bytes outside = budget_.outside(), expected = budget_.expected_outside();
    reserved_ = saturating_sub(outside + bytes, expected);
    // The limit knows of what stands outside now.
    const Bytes lost = saturating_sub(outside + bytes, std::max(outside, expected));
    if (store_->counts().limit < pager_->counts().at_once_peak + lost) return false;
    budget_.charge(reserved_);
    pager_->trim();  // now, not at the watch's next look: whoever asked begins at once
    return true;
  }

  void tell_of_plans() {
    store::LedgerSlot* slot = watch_->slot();
    if (follower_ != nullptr && slot != nullptr) write_plan_figures(*follower_, *slot);
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
    store::LedgerSlot* slot = this->slot();
    if (slot == nullptr) return;
    slot->last_request.store(shortage.refusal.requested.count);
    slot->last_op.set(op);
    slot->message.set(message);
    slot->refused.fetch_add(1);
  }

  // The pages of a card are no child's: it neither reads them nor keeps them alive.
  void note_forks() {
    const auto child = [] { running->after_fork_in_child(); };
    if (device_->is_card()) {
      pthread_atfork(nullptr, nullptr, child);
    } else {
      pthread_atfork([] { running->pager_->before_fork(); }, [] { running->pager_->after_fork_in_parent(); }, child);
    }
  }

  void after_fork_in_child() {
    if (device_->is_card()) {
      if (following_ != nullptr)
        following_->leave_to_parent();  // locks of the pager may be held, by threads that are not here
      pool_->leave_to_parent();
      in_child_of_card_ = true;
    } else {
      pager_->after_fork_in_child();
    }
    if (follower_ != nullptr) follower_->after_fork_in_child();
    if (recorder_ != nullptr) recorder_->after_fork_in_child();
    if (planning_ != nullptr) planning_->after_fork_in_child();
    watch_->leave_to_parent();
    budget_.expect_nothing();
    if (settings_.slot_of_child) slot_of_child_ = settings_.slot_of_child();
  }

  void say_goodbye() {
    if (in_child_of_card_) return;
    if (device_->is_card()) pager_->begin_capture();  // the driver may end before the thread that moves does
    watch_->look(true);
    tell_of_plans();
    if (recorder_ != nullptr) recorder_->finish();
    if (store::LedgerSlot* slot = this->slot()) slot->ended.store(1);
    if (!device_->is_card()) pager_->drop_idle();  // for the 7 to 10 MiB of code that libraries run as they end
  }

  const Settings settings_;
  const std::unique_ptr<BudgetedDevice> device_;
  const Bytes outside_expected_, peak_at_start_;
  store::Budget budget_;
  std::unique_ptr<store::Store> store_;
  store::Tier* tier_ = nullptr;          // of the device; null: nothing is moved
  std::unique_ptr<StorageMarks> marks_;  // of a card; else null
  std::unique_ptr<store::Pager> pager_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Recorder> recorder_;      // null: nothing is recorded
  std::unique_ptr<PlanFollower> follower_;  // null where there is no paging
  std::unique_ptr<Planning> planning_;      // null: no plan is made
  HeapScratch heap_scratch_{[this](Bytes bytes, const std::string& op) { charge(bytes, op); },
                            [this](Bytes bytes) { discharge(bytes); }};
  std::unique_ptr<Paging> paging_;        // null: nothing is moved, or faults alone bring things back
  std::unique_ptr<Following> following_;  // null: nobody wants to know of ops
  std::unique_ptr<Watch> watch_;
  Bytes reserved_;  // for planning
  const bool in_python_ = in_python();
  bool steps_are_told_ = false;
  bool in_child_of_card_ = false;               // made by fork
  store::LedgerSlot* slot_of_child_ = nullptr;  // of a child made by fork, which has left that of the watch
  std::atomic<std::uint64_t> evict_rounds_{0};  // these two: of Stress::Thread alone
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace

Session::~Session() = default;

Result<Session*> Session::start(Settings settings) {
  return start_on(std::move(settings), std::make_unique<ProcessMemory>());
}

Result<Session*> Session::start_on(Settings settings, std::unique_ptr<BudgetedDevice> device) {
  ULLAGE_CHECK(running == nullptr, "a session runs in this process already");
  const Bytes held = device->held();
  const Bytes warm_up = device->warm_up();
  if (settings.slot != nullptr) settings.slot->outside_expected.store((held + warm_up).count);
  ULLAGE_TRY(enough_beside(settings.budget, held, settings.held_once, warm_up));
  auto session = std::make_unique<Running>(std::move(settings), std::move(device), held);
  ULLAGE_TRY(session->open());
  session->begin();
  return static_cast<Session*>(session.release());
}

Session* Session::current() { return running; }

}  // namespace ullage::runtime
