// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/planning.h"

#include "ullage/base/sizes.h"
#include "ullage/base/threads.h"
#include "ullage/plan/fit.h"
#include "ullage/plan/model/move_rates.h"
#include "ullage/runtime/ops/kernel_facts.h"
#include "ullage/trace/file/trace_file.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

namespace ullage::runtime {
namespace {

// Steps to observe. The first may have begun before observing did.
constexpr std::uint64_t kSteps = 2;
// Plans that one run makes. A program that keeps changing its steps is then served on demand.
constexpr std::uint64_t kMostPlans = 8;
// The name of the recording in messages.
constexpr const char* kObserved = "the steps observed";
// How long to wait for planning to stop when the process ends or needs the bytes.
constexpr std::chrono::seconds kMostWaiting{5};
// The least time that the program waits for its plan, if it waits.
constexpr std::chrono::seconds kLeastWaiting{10};
// Once the program has needed planning's bytes this often, no more plans are made: it is served on demand.
constexpr int kMostGivingWay = 2;
// Bytes of heap that planning takes for each byte of the recording. Measured: 40 to 50.
constexpr std::uint64_t kHeapToRecording = 56;
constexpr Bytes kLeastHeap = 2_MiB;
// What is still there once a plan is followed: the plan, its tape, code that was read in. Measured: up to 1.1 MiB for
// a recording of 35 KiB, 2 MiB for one of 105 KiB.
constexpr std::uint64_t kLeftToRecording = 16;
constexpr Bytes kLeastLeft = 512_KiB;

Recorder::Settings observer_settings(Planning::Settings& settings, std::function<void()> at_border) {
  Recorder::Settings made;
  made.takes_begin_by_call = made.in_takes_only = made.takes_begin_in_midst = true;
  made.after_steps = kSteps;
  made.at_border = std::move(at_border);
  made.figures = settings.figures;
  made.synchronize = settings.synchronize;
  return made;
}

// Does the program use kernels of the kinds that probe_kernels() tries? If not, the probe would touch 10 MiB of torch's
// libraries for which nothing is reserved. A recording holds the name of each op as text.
bool has_tried_kernels(const std::string& recording) {
  return recording.find("aten::conv") != std::string::npos || recording.find("batch_norm") != std::string::npos;
}

// `ends`: Recorder::unrecorded_step_ends().
void add_step_ends(trace::Take& take, const std::vector<std::uint64_t>& ends) {
  EventId at{};
  std::size_t op = 0;
  for (const std::uint64_t end : ends) {
    for (; op < std::min<std::uint64_t>(end, take.details.size()); ++op) {
      at = std::max(at, EventId{std::min(take.details[op].end.value + 1, take.trace.end().value)});
    }
    take.borders.push_back({at, trace::ReportedBorder::What::StepEnd, {}, {}});
  }
}

}  // namespace

Planning::Planning(store::Pager& pager, PlanFollower& follower, Settings settings)
    : pager_(pager),
      follower_(follower),
      settings_(std::move(settings)),
      observer_(observer_settings(const_cast<Settings&>(settings_), [this] { observed(); })) {
  if (settings_.on.kernels == plan::Kernels::Card) facts_.emplace();
}

void Planning::begin() {
  if (state_.load(std::memory_order_relaxed) != State::Idle || made_ >= kMostPlans) return;
  State idle = State::Idle;
  if (state_.compare_exchange_strong(idle, State::Observing)) observe();
}

void Planning::mark_step() {
  observer_.mark_step();
  look_again();
}

void Planning::optimizer_was_called() {
  observer_.optimizer_was_called();
  look_again();
}

void Planning::look_again() {
  if (settings_.cast_choice != nullptr) choose_cast();
  State following = State::Following;
  if (!follower_.lost_for_good() || made_ >= kMostPlans) return;
  if (!state_.compare_exchange_strong(following, State::Observing)) return;
  follower_.suspend();  // the observer must see what the program does without a plan
  observe();
}

void Planning::choose_cast() {
  const State state = state_.load();
  const bool settled = state != State::Observing && state != State::Planning;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  switch (settings_.cast_choice->at_border(Seconds{std::chrono::duration<double>(now).count()}, settled)) {
    case CastChoice::Act::Cast:
      return cast_from_here();
    case CastChoice::Act::BeExact:
      return be_exact_from_here();
    case CastChoice::Act::Stay:
      return;
  }
}

// The exact step's plan is of no use to a step in bf16, which gets one of its own if it needs one.
void Planning::cast_from_here() {
  follower_.suspend();
  state_.store(State::Idle);
  if (settings_.cast_changed) settings_.cast_changed(true);
  if (!settings_.say) return;
  const std::optional<Seconds> exact = settings_.cast_choice->exact_step();
  settings_.say(exact ? "bf16 is tried from here on: the exact plan takes " + to_string(*exact) + " a step"
                      : "in bf16 from here on: no exact plan fits");
}

void Planning::be_exact_from_here() {
  follower_.suspend();
  follower_.adopt(exact_);
  state_.store(State::Following);
  if (settings_.cast_changed) settings_.cast_changed(false);
  if (settings_.say)
    settings_.say("exact again from here on: bf16 takes " + to_string(*settings_.cast_choice->cast_step()) + " a step");
}

void Planning::observe() {
  observed_from_ = std::chrono::steady_clock::now();
  pager_.planned().watch_waste();
  observer_.begin_take({}, settings_.live());
}

// Called on the program's thread, at a border of steps.
void Planning::observed() {
  state_.store(State::Planning);
  auto recording = std::make_shared<const std::string>(observer_.contents());
  step_ends_ = observer_.unrecorded_step_ends();
  observer_.end_take();
  wait_at_exit();
  if (!facts_ && has_tried_kernels(*recording)) probe();
  note_room(Bytes{recording->size()});
  const Bytes needed = kLeastHeap + Bytes{recording->size()} * kHeapToRecording;
  {
    // From here on planning can be asked to give way, because others may need the reserved bytes.
    const std::lock_guard hold(lock_);
    busy_ = true;
    stopping_.store(ended_);
    search_over_.store(ended_);
  }
  using Room = Charges::PlanningRoom;
  const Room room = settings_.reserve ? settings_.reserve(needed) : Room::Beside;
  if (room == Room::None) {
    not_busy();
    state_.store(State::GaveUp);
    if (settings_.say)
      settings_.say("no plan is made, because there is no room for the " + to_string(needed) +
                    " that making one takes; tensors are moved on demand");
    return;
  }
  if (room == Room::Alone && settings_.say)
    settings_.say("the program waits for its plan: the " + to_string(needed) +
                  " that making one takes are not free while it runs");
  start_thread([this, recording]() mutable {
    const std::optional<NewPlan> made = plan(*recording);
    recording.reset();
    malloc_trim(0);
    if (settings_.give_back) settings_.give_back();
    if (made) adopt(*made);  // not before: the plan counts on the room that planning took
    not_busy();
  });
  std::unique_lock lock(lock_);
  const auto done = [this] { return !busy_; };
  if (!settings_.wait && room != Room::Alone) return;
  // Two steps were observed. A plan saves less than a step's time in each step.
  const auto most = std::max<std::chrono::steady_clock::duration>(
      kLeastWaiting, (std::chrono::steady_clock::now() - observed_from_) / 2);
  if (!settings_.wait && !changed_.wait_for(lock, most, done)) search_over_.store(true);
  changed_.wait(lock, done);
}

void Planning::not_busy() {
  const std::lock_guard hold(lock_);
  busy_ = false;
  changed_.notify_all();
}

// Probes the kernels on a thread of its own, which has none of the program's modes. This waits for the thread's end,
// because the program may end at any moment afterwards. No thread may be inside torch when torch's globals are
// destroyed. (For the planning thread, stop() waits.)
void Planning::probe() {
  make_thread([this] { facts_ = probe_kernels(); }).join();
}

// Exit handlers run newest first, so stop() runs before anything that exists by now is destroyed.
void Planning::wait_at_exit() {
  static Planning* const one = this;
  [[maybe_unused]] static const int registered = std::atexit([] { one->stop(); });
}

// Notes the room that the plan may use. At a border of steps little moves, so the limit is steady then. The bytes that
// were wasted at the worst moment of the observed steps are assumed to be wasted again. Storages that libraries
// keep stay where they are. What planning leaves outside the pool is not the plan's to use. What was reserved for the
// first steps is the plan's to use, because it is given up when they have ended.
void Planning::note_room(Bytes of_recording) {
  const Bytes room = pager_.planned().room();  // asks for the limit
  limit_ = pager_.store().counts().limit;
  wasted_ = saturating_sub(limit_, room);
  // Pages of mapped files are let go before a plan's storages are moved, except what one op reads of them.
  const store::PagerCounts counts = pager_.counts();
  limit_ = saturating_sub(limit_ + counts.files_there, counts.files_at_once_peak);
  const Bytes left = kLeastLeft + of_recording * kLeftToRecording;
  if (settings_.limit_after_step) limit_ = settings_.limit_after_step(limit_, left);
  kept_for_libraries_ = pager_.kept_for_libraries();
}

bool Planning::give_way() {
  if (in_child_) return false;
  std::unique_lock lock(lock_);
  if (!busy_) return false;
  stopping_.store(true);
  search_over_.store(true);
  return changed_.wait_for(lock, kMostWaiting, [this] { return !busy_; });
}

// Planning was stopped because the program needed its bytes. Planning may begin again, until kMostGivingWay.
void Planning::gave_way() {
  {
    const std::lock_guard hold(lock_);
    if (ended_) return;
  }
  const bool for_good = ++gave_way_ == kMostGivingWay;
  state_.store(for_good ? State::GaveUp : State::Idle);
  if (for_good && settings_.say)
    settings_.say(
        "no plan is made, because the program needs the memory that making one takes; tensors are moved on demand");
}

void Planning::say_goodbye() {
  if (in_child_ || !settings_.say || pager_.counts().spilled == Bytes{}) return;
  if (adopted_) {
    if (follower_.counts().plans == 0) {
      settings_.say(
          "a plan was made, but no step ran as planned: no later step began like the one that was observed; tensors "
          "were moved on demand");
    }
    return;
  }
  const State state = state_.load();
  if (state == State::GaveUp) return;  // the reason has been said
  if (made_ > 0) {
    settings_.say("no plan was made: the steps that were observed fit without one; tensors were moved on demand");
  } else if (state == State::Planning) {
    settings_.say("no plan was made: the program ended while one was being made; tensors were moved on demand");
  } else if (gave_way_ > 0) {
    settings_.say(
        "no plan was made: planning gave its bytes to a request that needed them, and the program ended before it had "
        "begun again; tensors were moved on demand");
  } else if (state == State::Observing) {
    settings_.say(
        "no plan was made: steps are observed once tensors had to move, and the program ended before two whole ones; "
        "tensors were moved on demand");
  }
}

void Planning::stop() {
  if (in_child_) return;
  std::unique_lock lock(lock_);
  ended_ = true;  // first, so that nobody takes this for giving way
  stopping_.store(true);
  search_over_.store(true);
  changed_.wait_for(lock, kMostWaiting, [this] { return !busy_; });
}

void Planning::after_fork_in_child() {
  in_child_ = true;
  observer_.after_fork_in_child();
}

std::optional<Planning::NewPlan> Planning::plan(const std::string& recording) {
  try {
    return new_plan(recording);
  } catch (const std::exception& error) {
    if (stopping_.load()) {
      gave_way();
    } else {
      state_.store(State::GaveUp);
      if (settings_.say) settings_.say(std::string("no plan could be made: ") + error.what());
    }
    return std::nullopt;
  }
}

std::optional<Planning::NewPlan> Planning::new_plan(const std::string& recording) {
  Result<trace::TraceFile> file = trace::read_trace_file(std::as_bytes(std::span(recording)), kObserved);
  if (!file) throw std::runtime_error(file.error().text());
  if (!file->takes.empty()) add_step_ends(file->takes.back(), step_ends_);
  Result<plan::Step> step = plan::planned_step(*file, settings_.on, {}, kObserved);
  if (!step) throw std::runtime_error(step.error().text());
  if (facts_ && !facts_->convolution_input_unread) {
    for (plan::StepOp& op : step->ops) op.unread.clear();
  }
  plan::hold_in_place(*step, kept_for_libraries_);
  plan::FitQuestion question{.memory = limit_, .beside = {.rounding = wasted_}, .name = kObserved};
  question.ask.stop = &search_over_;
  question.ask.rates = plan::rates_of(pager_.counts(), settings_.on.kernels);
  question.ask.levers.batch_norm = facts_ && facts_->recomputes_batch_norm;
  const Result<plan::Fit> fit = plan::fit(*step, question);
  if (!fit) throw std::runtime_error(fit.error().text());
  if (stopping_.load()) throw std::runtime_error("planning was stopped");
  const plan::Plan& made = fit->plan;
  ++made_;
  if (made.outcome != plan::Plan::Outcome::Planned) {
    go_on_without(made);
    return std::nullopt;
  }
  const double overhead = made.step.count > 0 ? made.overhead.count / made.step.count : 0.0;
  return NewPlan{std::make_shared<const PlanProgram>(plan::sites_of(*step), made), made.peak, overhead};
}

// Called after a plan was made that has nothing to carry out.
void Planning::go_on_without(const plan::Plan& made) {
  // If these steps fit, others filled the pool: when it is nearly full again, the steps at that time are observed.
  // Steps that are timed in bf16 are not observed again, because the trial would not end.
  const State fits = settings_.cast_choice == nullptr || is_exact() ? State::Idle : State::Following;
  state_.store(made.outcome == plan::Plan::Outcome::Fits ? fits : State::GaveUp);
  if (made.outcome != plan::Plan::Outcome::Infeasible) return;
  if (is_exact()) settings_.cast_choice->exact_plan(std::nullopt);
  if (settings_.say && search_over_.load()) {
    settings_.say("no plan was found in the time that the program waited for it; tensors are moved on demand");
  } else if (settings_.say) {
    settings_.say(fmt::format("no plan keeps the tensors within {}; the least is {}{}; tensors are moved on demand",
                              to_string(made.budget), to_string(made.least),
                              made.least_set_by.empty() ? "" : ", set by " + made.least_set_by));
  }
}

void Planning::adopt(const NewPlan& made) {
  follower_.adopt(made.program);
  adopted_ = true;
  if (is_exact()) {
    exact_ = made.program;
    settings_.cast_choice->exact_plan(made.overhead);
  }
  state_.store(State::Following);
  if (settings_.say) {
    settings_.say(fmt::format("plan: {} of tensors, {:+.1f} % time, ops recomputed: {}, storages spilled: {}",
                              to_string(made.peak), made.overhead * 100, made.program->recomputes(),
                              made.program->spills()));
  }
}

// Are casts allowed, and is the present step not cast?
bool Planning::is_exact() const { return settings_.cast_choice != nullptr && !settings_.cast_choice->casts(); }

}  // namespace ullage::runtime
