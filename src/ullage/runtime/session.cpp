// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/session.h"

#include "ullage/base/sizes.h"
#include "ullage/base/threads.h"
#include "ullage/runtime/following.h"
#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/half_ops.h"
#include "ullage/runtime/ops/heap_scratch.h"
#include "ullage/runtime/ops/op_info.h"
#include "ullage/runtime/planned_paging.h"
#include "ullage/runtime/pool/budgeted_device.h"
#include "ullage/runtime/pool/charges.h"
#include "ullage/runtime/pool/pool.h"
#include "ullage/runtime/pool/storage_marks.h"
#include "ullage/runtime/pool/watch.h"
#include "ullage/runtime/python/python_process.h"
#include "ullage/runtime/record/recorder.h"
#include "ullage/runtime/session_figures.h"
#include "ullage/store/os_file_pages.h"
#include "ullage/store/pager.h"
#include "ullage/store/process_memory.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::runtime {
namespace {

// Milliseconds: the most that a garbage collection waits until room is made for its copies (note_collection()).
constexpr int kMostWaits = 200;
// Room for the first program that is started. Measured: ffmpeg, and dd with blocks of 28 MiB, take 7 to 20 MiB beyond
// the margin before the pool has given way.
constexpr Bytes kLeastOfAProgram = 32_MiB;

// After a shorter wait than this, a block that the watch was told of is still expected.
constexpr std::chrono::milliseconds kShort{20};
// For how long a large block outside the pool is asked for before it is refused: ops that run may end meanwhile. The
// longer time is for when others grow that may give memory back.
constexpr std::chrono::milliseconds kAsking{2000}, kMostAsking{10000};

class Running;
Running* running = nullptr;

// Is the budget enough for the bytes outside the pool at the start? `held`: what the process holds now. `held_once`:
// the most that it held before now, while it was loaded; zero: that need not fit. `warm_up`: what its libraries will
// still take.
Status enough_beside(Bytes budget, Bytes held, Bytes held_once, Bytes warm_up) {
  const Bytes least = store::Budget::least(held, warm_up), peak = held_once + store::Budget::kMargin;
  if (budget == Bytes{} || budget >= std::max(least, peak)) return success();
  if (peak > least) {
    return Error{
        Error::Kind::BadArgument,
        fmt::format("the budget of {} is below what the process needs before the first tensor: it held {} while "
                    "it was loaded, and {} are kept as margin; state at least {}",
                    to_string(budget), to_string(held_once), to_string(store::Budget::kMargin), with_count(peak)),
        "--memory"};
  }
  return Error{Error::Kind::BadArgument,
               fmt::format("the budget of {} is below what the process needs before the first tensor: it holds {}, its "
                           "libraries will take up to {} more, and {} are kept as margin; state at least {}",
                           to_string(budget), to_string(held), to_string(warm_up), to_string(store::Budget::kMargin),
                           with_count(least)),
               "--memory"};
}

// Makes the parts, begins and ends them, and passes events on to them. A new part is made in open() or begin(). Never
// destroyed: tensors of static lifetime are freed through the pool after every destructor has run.
class Running final : public Session, public PoolListener {
 public:
  Running(Settings settings, std::unique_ptr<BudgetedDevice> device, Bytes outside_start)
      : settings_(std::move(settings)),
        device_(std::move(device)),
        outside_expected_(outside_start + device_->warm_up()),
        budget_(
            settings_.budget, outside_start, device_->warm_up(), [this] { return device_->held(); }, settings_.tree,
            /*lends=*/device_->is_the_process()) {}

  Status open() {
    ULLAGE_TRY_VALUE(store_, store::Store::create(device_->pages(), budget_));
    store::Tier* tier = nullptr;
    if (!budget_.unlimited()) {
      ULLAGE_TRY_VALUE(tier, device_->open_tier(settings_.spill));
    }
    figures_.emplace(*device_, budget_, *store_, outside_expected_, settings_.slot);
    pager_ = store::Pager::create(*store_, tier, pager_settings());
    pool_.emplace(*pager_, budget_, *this, device_->device(), Pool::Card{device_->marks(), device_->work()});
    charges_.emplace(
        *pager_, budget_, *pool_, [this](std::int64_t bytes) { record_charge(bytes); },
        [this](bool finally) { return somebody_gives_way(finally); });
    if (!settings_.record_file.empty()) recorder_.emplace(recorder_settings());
    watch_.emplace(*pager_, budget_, watch_settings());
    moves_ = tier != nullptr;
    return success();
  }

  // Connects the parts with torch. The pool comes last, because allocations go through it from then on and need all
  // that was set before.
  void begin() {
    running = this;
    follow_device(device_->device());
    note_forks();
    std::atexit([] { running->say_goodbye(); });
    if (moves_) {
      paging_.emplace(PlannedPaging::Parts{settings_, *device_, *store_, *pager_, *pool_, *charges_,
                                           [this] { return figures_->now(); }});
      paging_->start([this](const store::Pager::FaultAnswer& answer) { give_up(answer); });
    }
    begin_following();
    set_steps_are([this](std::uint64_t total) { note_steps(total); });
    set_follows(&Interceptor::sees_this_thread);
    set_recorded_as_a_whole(&recorded_as_a_whole);
    if (device_->marks() != nullptr) {
      set_place_of_storage(&place_of_storage);
      set_thread_begins(&Interceptor::arm_this_thread);
    }
    set_interpreter_ends([this] { make_way_for_the_end(); });
    if (device_->is_kept_by_forks()) set_collects([this](bool begins) { note_collection(begins); });
    device_->install(*pool_);
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
    if (stated == Bytes{} && recorder_) recorder_->finish();
    return success();
  }
  void mark_step() override {
    steps_are_reported_ = true;
    // Before the watch counts the step that ends here: if its plan is new, that plan was adopted in this step.
    write_more_figures();
    watch_->mark_step();
    if (following_) following_->renew();
    if (recorder_) recorder_->mark_step();
    if (paging_) paging_->mark_step();
    if (store::LedgerSlot* slot = figures_->figures())
      slot->threads.store(static_cast<std::uint64_t>(at::get_num_threads()));
  }
  bool casts() const override { return paging_ && paging_->casts(); }
  store::LedgerSlot* slot() override { return figures_->slot(); }
  Recorder* recorder() override { return recorder_ ? &*recorder_ : nullptr; }
  const std::string& rehearsal() const override { return settings_.rehearsal; }

  void charge(Bytes bytes, const std::string& what) override {
    if (device_->is_the_process()) charges_->charge(bytes, what);
  }
  void discharge(Bytes bytes) override {
    if (device_->is_the_process()) charges_->discharge(bytes);
  }
  bool make_way(Bytes bytes, bool may_fail) override {
    if (!device_->is_the_process() || bytes > budget_.stated())
      return true;  // such a block is touched in part, or malloc has none
    const auto own_gives_way = [&] {
      if (!in_child_) watch_->make_way(bytes);
    };
    own_gives_way();
    if (settings_.tree == nullptr || is_ullages_thread) return true;
    for (const auto began = std::chrono::steady_clock::now();;) {
      const bool is_served = settings_.tree->make_way(bytes, may_fail);
      const auto waited = std::chrono::steady_clock::now() - began;
      if (is_served && waited < kShort) return true;
      own_gives_way();  // again, because the watch takes a block for touched after some processor time
      if (is_served) return true;
      if (waited > (settings_.tree->others_grow() ? kMostAsking : kAsking)) break;
    }
    settings_.tree->refused(bytes);
    return false;
  }
  void make_way_for_a_program() override {
    if (in_child_) return;  // the launcher asks the pools for room
    const Bytes largest = settings_.tree != nullptr ? settings_.tree->largest_program() : Bytes{};
    if (device_->is_the_process()) watch_->make_way(std::min(std::max(kLeastOfAProgram, largest), budget_.stated()));
  }
  void file_mapped(Address at, Bytes size, bool writable) override {
    if (follows_files()) files_.mapped_at(at, size, writable);
  }
  bool unmaps_a_file(Address at, Bytes size) override { return files_.unmapped_at(at, size); }
  void file_unmapped(Address at, Bytes size) override { pager_->file_unmapped({at, size}); }
  bool grant(Bytes bytes) override {
    note_least();  // the granted bytes will stand outside the pool
    return charges_->grant(bytes);
  }
  void drop_idle() override { pager_->drop_idle(); }
  void captures(bool begin) override {
    if (begin) pager_->begin_capture();
    if (CardWork* work = device_->work()) work->captures(begin);
    if (!begin) pager_->end_capture();
  }

  void allocated(Address at, Bytes bytes) override {
    if (recorder_ && settings_.slot != nullptr && settings_.slot->pool_live_peak.load() == 0)
      settings_.slot->pool_live_peak.store(bytes.count);  // at once: nobody may take the recording over now
    if (in_python_) prepare_python_later();
    if (paging_) paging_->allocating();
    if (following_) following_->follow_this_thread();
    for (Recorder* recorder : recorders()) recorder->allocated(at, bytes);
    if (paging_) paging_->allocated();
  }
  bool freeing(Address at, bool may_stay) override {
    if (StorageMarks* marks = device_->marks()) marks->forget(at);
    const bool stays = paging_ && paging_->freeing(at, may_stay);
    for (Recorder* recorder : recorders()) recorder->freed(at);  // the program freed it, even if a plan keeps it
    return stays;
  }
  void refused(const store::Shortage& shortage, const std::string& op, const std::string& message) override {
    if (recorder_) recorder_->refused(shortage.refusal.requested);
    // Set before figures_->refused() sets LedgerSlot::refused_least. The watch's thread raises refused_least by the
    // bytes that stand here, which must not be those of an earlier request.
    refused_at_once_.store(shortage.at_once.count);
    figures_->refused(shortage, op, message, pool_->least_for(shortage));
  }

 private:
  // The recorders in use: one for the trace file, one for planning.
  class Recorders final {
   public:
    Recorders(Recorder* file, Recorder* planning) {
      if (file != nullptr) all_[count_++] = file;
      if (planning != nullptr) all_[count_++] = planning;
    }
    Recorder* const* begin() const { return all_.data(); }
    Recorder* const* end() const { return all_.data() + count_; }

   private:
    std::array<Recorder*, 2> all_{};
    std::size_t count_ = 0;
  };
  Recorders recorders() { return {recorder(), paging_ ? paging_->observer() : nullptr}; }

  // Pages of mapped files are the process's memory, and ops must be seen to know when they are used.
  bool follows_files() const { return moves_ && device_->is_the_process(); }

  store::Pager::Settings pager_settings() {
    store::Pager::Settings settings = device_->pager_settings();
    settings.evict_all = settings_.stress == Stress::Ops || settings_.stress == Stress::Strict;
    settings.heal_faults &= settings_.stress != Stress::Strict;
    settings.last_resort = [this](bool finally) { return somebody_gives_way(finally); };
    if (device_->is_the_process()) {
      settings.files = &files_;
      settings.in_files = [this](Bytes there, Bytes coming, Bytes own, Bytes found) {
        budget_.in_files(there, coming, own, found);
      };
    }
    if (store::Tree* tree = settings_.tree) {
      settings.diverged = [tree](Bytes bytes) { tree->diverged(bytes); };
      settings.copying = [tree](Bytes bytes) { tree->copying(bytes); };
      settings.copied = [tree](Bytes bytes) { tree->copied(bytes); };
      settings.left_to_children = [tree](Bytes bytes) { tree->left_to_children(bytes); };
      settings.used_inherited = [tree](Bytes bytes) { tree->used_inherited(bytes); };
    }
    return settings;
  }

  Watch::Settings watch_settings() {
    Watch::Settings settings;
    settings.slot = settings_.slot;
    settings.warn = settings_.warn;
    settings.peak = [this] { return device_->held_peak(); };
    settings.refused_at_once = [this] { return Bytes{refused_at_once_.load()}; };
    settings.between_looks = device_->between_looks();
    settings.outside_follows_steps = device_->is_the_process();
    settings.tree = settings_.tree;
    return settings;
  }

  Recorder::Settings recorder_settings() {
    Recorder::Settings settings;
    settings.file = settings_.record_file;
    settings.device = device_->device().str();
    settings.takes_begin_by_call = !settings_.rehearsal.empty();
    settings.lines = in_python_;
    if (settings_.counts_half && !settings_.casts_if_needed) settings.changes.push_back({"--allow bf16", "rounding"});
    settings.after_steps = settings_.stop_after;
    settings.synchronize = [this] { device_->synchronize(); };
    settings.at_border = [this] { end_at_border(); };
    settings.is_recorded = settings_.is_recorded;
    settings.slot = settings_.slot;
    settings.warn = settings_.warn;
    settings.figures = [this] { return figures_->now(); };
    return settings;
  }

  // Ends the recorded process at the step border that was asked for (Settings::stop_after). The program does not get to
  // its own end, because it was started only to be recorded.
  void end_at_border() {
    if (settings_.is_recorded && !settings_.is_recorded()) return;
    recorder_->write(trace::Take::End::StepBorder);
    if (settings_.slot != nullptr) settings_.slot->stopped_at_border.store(1);
    settings_.end_process();
  }

  // The recorders come after paging in the list of listeners, so that their times are those of the kernels, without the
  // time in which paging brings bytes back.
  void begin_following() {
    std::vector<OpListener*> ops = paging_ ? paging_->before_the_recorder() : std::vector<OpListener*>{};
    std::vector<SavedListener*> saves = paging_ ? paging_->saves() : std::vector<SavedListener*>{};
    // If the device does not bring bytes back at a page fault, ops must announce every access, from the first one on.
    const bool announced_alone = !ops.empty() && !device_->heals_faults();
    for (Recorder* recorder : recorders()) ops.push_back(recorder), saves.push_back(recorder);
    if (settings_.counts_half) ops.push_back(&half_ops_.emplace(settings_.slot->half_ops));
    if (ops.empty()) return;
    if (device_->is_the_process()) ops.push_back(&heap_scratch_);  // innermost: its charges are recorded inside the op
    // Ops in bf16 are counted from the first op on. If casts are made only where they are needed, the first one comes
    // after the pool came near its limit. From then on every op is followed anyway.
    const bool counts = settings_.counts_half && !settings_.casts_if_needed;
    const bool at_once = recorder_ || announced_alone || counts;
    following_.emplace(std::move(ops), std::move(saves),
                       [this, at_once] { return at_once || shares_much_ || pager_->under_pressure(); });
    if (Status installed = following_->install(); !installed && settings_.warn)
      settings_.warn(installed.error().text());
    if (at_once) following_->follow_this_thread();
  }

  // Called before a request is refused. Gives up the first of these that exists: unused granted bytes, the charge for
  // the process's end, the one for copies of the heap, the bytes that planning holds, the unused part of the reserve.
  // False: there was nothing. `finally`: forgets what the other processes announced.
  bool somebody_gives_way(bool finally) {
    if (finally && settings_.tree != nullptr) settings_.tree->forget_announced();
    if (finally) return false;
    const Bytes unused = settings_.take_back ? settings_.take_back() : Bytes{};
    if (unused > Bytes{}) {
      charges_->release(unused);
      pager_->missing();  // measures the outside without these bytes
      note_least();
      return true;
    }
    if (charged_for_the_end_.exchange(false)) {
      budget_.discharge(store::Budget::kAtExit);
      return true;
    }
    if (const Bytes charged{charged_for_copies_.exchange(0)}; charged > Bytes{}) {
      budget_.discharge(charged);
      return true;
    }
    if (paging_ && paging_->planning_gives_way()) return true;
    return budget_.lend();
  }

  // Notes the least budget up to now (Budget::note_least()). Call this when the bytes outside the pool change.
  // Otherwise the pool's need from before the change is added to the bytes outside from after it, and the least budget
  // is too high.
  void note_least() { static_cast<void>(budget_.note_least(pager_->take_at_once())); }

  void record_charge(std::int64_t bytes) {
    for (Recorder* recorder : recorders()) recorder->charged(bytes);
  }

  // Called when the number of steps changed, judged by the calls of the optimizers. That is good enough to count steps.
  // Recorders find the exact borders in the ops.
  void note_steps(std::uint64_t total) {
    if (steps_are_reported_) return;
    if (total < watch_->steps()) return watch_->correct_steps(total);
    write_more_figures();
    watch_->correct_steps(total - 1);
    watch_->count_step();
    if (paging_) paging_->optimizer_was_called();
  }

  void write_more_figures() {
    store::LedgerSlot* slot = figures_->figures();
    if (slot == nullptr) return;
    if (!in_child_) device_->write_figures(*slot);  // a lost thread of the parent may hold its locks
    if (paging_) paging_->write_figures(*slot);
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

  void note_forks() {
    const auto child = [] { running->after_fork_in_child(); };
    if (!device_->is_kept_by_forks()) {
      pthread_atfork(nullptr, nullptr, child);
    } else {
      pthread_atfork([] { running->before_fork(); }, [] { running->after_fork_in_parent(); }, child);
    }
  }

  void before_fork() {
    if (store::Tree* tree = settings_.tree; tree != nullptr && tree->is_counted() && moves_ && following_) {
      const store::StoreCounts counts = store_->counts();
      if (counts.live * kMuchOfLimit > counts.limit) shares_much_ = true;
      // The child begins with this thread's state, so it is followed from its first op on.
      if (shares_much_) following_->follow_this_thread();
      tree->forking(shares_much_);
      if (shares_much_) budget_.note_fork(counts.live);
    }
    pager_->before_fork();
  }

  void after_fork_in_parent() {
    pager_->after_fork_in_parent();
    if (settings_.tree != nullptr) settings_.tree->forked();
  }

  void after_fork_in_child() {
    if (!device_->is_kept_by_forks()) {
      // The child must not call the pager: a thread of the parent, which the child lacks, may have held a lock of it.
      if (following_) following_->leave_to_parent();
      pool_->leave_to_parent();
      has_nothing_ = true;
    } else {
      pager_->after_fork_in_child();
    }
    if (paging_) paging_->after_fork_in_child();
    if (recorder_) recorder_->after_fork_in_child();
    watch_->leave_to_parent();
    budget_.expect_nothing();
    in_child_ = true;
    figures_->leave_to_parent(settings_.slot_of_child ? settings_.slot_of_child() : nullptr);
  }

  // Called when a garbage collection begins, and when it has ended. It writes to pages of Python's heap that the
  // process shares with others since a fork, and so copies them. The tree then holds more, although this process's own
  // figure stays the same: only the launcher's next count would show it. So the bytes are announced and charged before
  // they are copied. The watch's thread makes the room, because this thread may hold a lock that making room takes.
  void note_collection(bool begins) {
    if (settings_.tree == nullptr || ending_) return;
    if (!begins && announced_copies_ == Bytes{}) return;
    const Bytes shared = store::shared_pages_of(::getpid()).written;  // takes milliseconds
    if (!begins) {
      const Bytes announced = std::exchange(announced_copies_, {});
      budget_.discharge(Bytes{charged_for_copies_.exchange(0)});
      budget_.leave_out_of_least(false);
      settings_.tree->end_lease(announced, {});
      settings_.tree->diverged(std::min(announced, saturating_sub(shared_before_, shared)));
      return;
    }
    shared_before_ = shared;
    announced_copies_ = saturating_sub(shared, pager_->shared_by_forks());
    if (announced_copies_ == Bytes{}) return;
    settings_.tree->lease(announced_copies_);
    budget_.leave_out_of_least(true);  // somebody_gives_way() gives this charge up before a refusal
    budget_.charge(announced_copies_);
    charged_for_copies_.store(announced_copies_.count);
    for (int i = 0; i < kMostWaits && !in_child_ && pager_->missing() > Bytes{}; ++i) ::usleep(1000);
  }

  // Charges for code that an interpreter and its libraries run only as they end. Its pages come into memory faster than
  // the watch measures, so the room is made before.
  void make_way_for_the_end() {
    if (in_child_ || !device_->is_the_process() || std::exchange(ending_, true)) return;
    budget_.leave_out_of_least(true);  // somebody_gives_way() gives this charge up before a refusal
    budget_.charge(store::Budget::kAtExit);
    charged_for_the_end_ = true;
    pager_->trim();
  }

  void say_goodbye() {
    if (has_nothing_) return;
    make_way_for_the_end();
    device_->ending(*pager_);
    watch_->look(true);
    write_more_figures();
    if (paging_ && !in_child_) paging_->say_goodbye();
    if (recorder_) recorder_->finish();
    figures_->ended();
    device_->ended(*pager_);
  }

  const Settings settings_;
  const std::unique_ptr<BudgetedDevice> device_;
  const Bytes outside_expected_;
  store::Budget budget_;
  store::OsFilePages files_;
  // Set by open() and begin(), in this order.
  std::unique_ptr<store::Store> store_;
  std::optional<SessionFigures> figures_;
  std::unique_ptr<store::Pager> pager_;
  std::optional<Pool> pool_;
  std::optional<Charges> charges_;
  std::optional<Recorder> recorder_;  // none: nothing is recorded
  std::optional<Watch> watch_;
  bool moves_ = false;                   // there is a tier below the device
  std::optional<PlannedPaging> paging_;  // none: nothing moves
  std::optional<HalfOps> half_ops_;      // none: Settings::counts_half is false
  // charge() reserves the bytes and also records them in takes, so it gets only scratch that every run of the op
  // allocates. Charges::reserve() records nothing.
  HeapScratch heap_scratch_{[this](HeapScratch::Scratch scratch, const std::string& op) {
                              scratch.every_time ? charge(scratch.bytes, op) : charges_->reserve(scratch.bytes, op);
                            },
                            [this](HeapScratch::Scratch scratch) {
                              scratch.every_time ? discharge(scratch.bytes) : charges_->release(scratch.bytes);
                            }};
  std::optional<Following> following_;  // none: nobody listens to ops
  const bool in_python_ = in_python();
  bool steps_are_reported_ = false;
  bool ending_ = false;
  std::atomic<bool> charged_for_the_end_{false};
  // Of the garbage collection in progress. The charge may be given up before the collection ends.
  Bytes shared_before_, announced_copies_;
  std::atomic<std::uint64_t> charged_for_copies_{0};
  // Parent and child are followed from a fork on if more than one part in so many of the pool's limit was live: which
  // shared pages the parent writes, and what the child uses of them, is known of followed ops only.
  static constexpr std::uint64_t kMuchOfLimit = 8;
  std::atomic<bool> shares_much_{false};
  std::atomic<std::uint64_t> refused_at_once_{0};  // Shortage::at_once of the last refused request
  bool in_child_ = false;                          // made by fork
  bool has_nothing_ = false;                       // a child made by fork that cannot use the parent's device (a card)
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
