// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/record/recorder.h"

#include "ullage/base/replace_file.h"
#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/mapped_files.h"
#include "ullage/runtime/python/python_line.h"

#include <algorithm>
#include <fstream>
#include <ostream>
#include <sstream>
#include <utility>

namespace ullage::runtime {
namespace {

// After a refusal the file is written only if the last writing took at most 1/kRest of the time since it ended. So a
// program that catches its errors and tries again does not spend its time on writing.
constexpr int kRest = 10;
// For the finder of steps, parameters that are not the pool's have these ids and above.
constexpr std::uint64_t kOutsideThePool = std::uint64_t{1} << 63;

// The ops of this thread that are recorded and in flight, innermost last.
struct ThisThread {
  struct Open {
    const Recorder* recorder;  // a process may have two: for the trace file, and for planning
    const OpCall* call;
    OpId op;
    trace::OutsideReads outside;
  };
  c10::SmallVector<Open, 4> open;

  bool innermost(const Recorder* recorder, const OpCall* call) const {
    return !open.empty() && open.back().recorder == recorder && open.back().call == call;
  }
  bool knows(const Recorder* recorder, const OpCall* call) const {
    return std::ranges::any_of(open, [&](const Open& op) { return op.recorder == recorder && op.call == call; });
  }
};
ThisThread& this_thread() {
  thread_local ThisThread here;
  return here;
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string_view layer_of_parameter(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

}  // namespace

Recorder::Recorder(Settings settings) : settings_(std::move(settings)) {
  head_.torch = torch_version();
  head_.command = command_line();
  head_.device = settings_.device;
  head_.changes = settings_.changes;
}

trace::EventLog::Instant Recorder::now() const {
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - take_began_);
  return {static_cast<std::uint64_t>(passed.count())};
}

// If the program does not begin takes itself, there is one take. It begins with the first event.
void Recorder::ensure_take() {
  if (in_take_ || settings_.takes_begin_by_call) return;
  in_take_ = true;
  take_began_ = Clock::now();
  log_.begin_take({});
}

Recorder::Held* Recorder::find(Address at) {
  const auto found = held_.find(at.value);
  return found == held_.end() ? nullptr : &found->second;
}

// ---- storages

void Recorder::allocated(Address at, Bytes bytes) {
  record([&](Lock&) {
    ensure_take();
    // A take that another thread began since this storage was made may have it already.
    if (const Held* known = find(at); known == nullptr || known->bytes != bytes) add(at, bytes);
  });
}

void Recorder::add(Address at, Bytes bytes) {
  live_ += bytes;
  const StorageId id = log_.allocated(bytes, thread_of_work(false), now());
  held_.insert_or_assign(at.value, Held{id, bytes, false, false, false, 0, {}, {}});
}

void Recorder::forget() {
  log_ = trace::EventLog();
  held_.clear();
  outside_.clear();
  updates_outside_ = false;
  live_ = {};
}

void Recorder::freed(Address at) {
  record([&](Lock&) {
    const auto found = held_.find(at.value);
    if (found == held_.end()) return;
    log_.freed(found->second.id, thread_of_work(false), now());
    live_ -= found->second.bytes;
    held_.erase(found);
  });
}

void Recorder::refused(Bytes requested) {
  bool due = false;
  record([&](Lock&) {
    log_refusal(requested);
    due = Clock::now() - written_ >= writing_ * kRest;
  });
  if (due) write(trace::Take::End::OutOfMemory);
}

void Recorder::log_refusal(Bytes requested) {
  ThisThread& here = this_thread();
  ensure_take();
  // The pager can refuse an op's inputs before begin() is called here; then the op is logged now.
  const OpCall* call = Interceptor::current();
  const bool known = call == nullptr || here.knows(this, call);
  OpId op{};
  if (!known) {
    OpUses uses(std::span<const StorageUse>(call->inputs.data(), call->inputs.size()));
    op = log_op(*call, uses, {});
    // Each logged op counts, so that ordinals are the same in the log.
    const auto token = reinterpret_cast<std::uint64_t>(call->name.data());
    steps_.op(token, in_backward() ? trace::StepFinder::Kind::Backward : trace::StepFinder::Kind::Other, live_.count);
  }
  log_.out_of_memory(requested, thread_of_work(false), now());
  if (!known) log_.op_ended(op, {}, /*failed=*/true, now());
  refused_last_ = true;
}

// ---- ops

OpId Recorder::log_op(const OpCall& call, OpUses& uses, std::string_view line) {
  trace::OpView op;
  op.line = line;
  op.name = call.name;
  op.node = node_being_run();
  op.layer = layer_of(uses);
  op.thread = thread_of_work(true);
  op.backward = in_backward();
  op.grad_mode = grad_mode();
  op.sliced = call.sliced;
  return log_.op_begun(op, uses.known([this](Address at) { return find(at); }), now());
}

void Recorder::begin(OpCall& call) {
  if (!looks()) return;
  OpUses uses(*call.handle, call.arguments);
  // Not under the lock, because python_line() may wait for the interpreter lock.
  const std::string_view line = settings_.lines && !in_backward() ? python_line() : std::string_view();
  record([&](Lock& lock) {
    ensure_take();
    refused_last_ = false;
    meet_leaves(uses);
    tell_steps(call, uses);
    tell_border(lock);
    this_thread().open.push_back({this, &call, log_op(call, uses, line), outside_reads(call)});
  });
}

void Recorder::end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept {
  ThisThread& here = this_thread();
  if (!here.innermost(this, &call)) return;
  const ThisThread::Open open = here.open.back();
  here.open.pop_back();
  if (settings_.synchronize && looks()) settings_.synchronize();
  record([&](Lock&) {
    OpUses uses(outputs);
    log_.op_ended(open.op, uses.known([this](Address at) { return find(at); }), !returned, now(), open.outside);
  });
}

trace::OutsideReads Recorder::outside_reads(const OpCall& call) {
  trace::OutsideReads reads;
  for (const StorageUse& input : call.inputs) {
    if (const Held* held = find(input.begin); held != nullptr && !held->outside) continue;
    const bool mapped = !input.written && lies_in_private_file(input.storage);
    (mapped ? reads.mapped : reads.other) = true;
  }
  return reads;
}

// Notes which storages are parameters and gradients.
void Recorder::meet_leaves(const OpUses& uses) {
  for (const OpUses::Leaf& leaf : uses.leaves()) {
    Held* parameter = find(leaf.at);
    if (parameter == nullptr) parameter = meet_outside(leaf.at);
    if (parameter != nullptr && !parameter->parameter) {
      parameter->parameter = true;
      log_.has_role(parameter->id, trace::Role::Parameter, parameter->name);
    }
    Held* gradient = leaf.gradient == Address{} ? nullptr : find(leaf.gradient);
    if (gradient != nullptr && !gradient->gradient) {
      gradient->gradient = true;
      log_.has_role(gradient->id, trace::Role::Gradient, {});
    }
  }
}

// Logs a parameter that is not the pool's as a storage of no bytes, so that readers find the steps, the optimizer's
// state and the layers. The observer of planning begins in the midst of a step, where its first use would look like a
// birth in that step; so it only tells the finder of steps.
Recorder::Held* Recorder::meet_outside(Address at) {
  if (settings_.in_takes_only) {
    outside_.try_emplace(at.value, StorageId{kOutsideThePool + outside_.size()});
    return nullptr;
  }
  add(at, Bytes{});
  Held* held = find(at);
  held->outside = true;
  if (const auto known = outside_names_.find(at.value); known != outside_names_.end()) {
    set_name(*held, known->second);
    outside_names_.erase(known);
  }
  return held;
}

std::optional<StorageId> Recorder::parameter_at(Address at) {
  if (const Held* held = find(at)) return held->parameter ? std::optional(held->id) : std::nullopt;
  const auto outside = outside_.find(at.value);
  return outside != outside_.end() ? std::optional(outside->second) : std::nullopt;
}

std::vector<std::uint64_t> Recorder::unrecorded_step_ends() {
  std::vector<std::uint64_t> ends;
  record([&](Lock&) {
    if (updates_outside_) ends = steps_.borders();
  });
  if (!ends.empty()) ends.erase(ends.begin());  // the first is the begin of the take
  return ends;
}

void Recorder::tell_steps(const OpCall& call, const OpUses& uses) {
  using Kind = trace::StepFinder::Kind;
  const bool backward = in_backward();
  c10::SmallVector<StorageId, 4> updated;
  for (const OpUses::One& use : uses.all()) {
    if (backward || use.how != trace::TensorUse::How::Written) continue;
    const std::optional<StorageId> parameter = parameter_at(use.at);
    if (!parameter) continue;
    updated.push_back(*parameter);
    updates_outside_ |= parameter->value >= kOutsideThePool;
  }
  const Kind kind = backward ? Kind::Backward : updated.empty() ? Kind::Other : Kind::Update;
  // The names of ops live for ever, each at one address.
  const auto token = reinterpret_cast<std::uint64_t>(call.name.data());
  steps_.op(token, kind, live_.count, updated.empty() ? StorageId{} : updated.front());
  for (std::size_t i = 1; i < updated.size(); ++i) steps_.also_writes(updated[i]);
  const bool followed = !backward && grad_mode();
  for (const OpUses::Leaf& leaf : uses.leaves()) {
    if (const Held* held = find(leaf.at)) {
      steps_.parameter_used(held->id, followed);
    } else if (const std::optional<StorageId> outside = parameter_at(leaf.at)) {
      steps_.parameter_used(*outside, followed);
    }
  }
}

std::string_view Recorder::layer_of(const OpUses& uses) {
  for (const OpUses::One& use : uses.all()) {
    const Held* held = find(use.at);
    if (held != nullptr && !held->layer.empty()) return held->layer;
  }
  return {};
}

// ---- what autograd keeps

void Recorder::saved(const StorageUse& use, SavedKind kind) {
  record([&](Lock&) {
    Held* held = find(use.begin);
    if (held == nullptr) return;
    ++held->saves;
    log_.saved(held->id, kind, now());
  });
}

void Recorder::released(Address begin) noexcept {
  record([&](Lock&) {
    Held* held = find(begin);
    if (held == nullptr || held->saves == 0) return;  // the address is another storage's by now
    --held->saves;
    log_.released(held->id, now());
  });
}

// ---- called by the program

void Recorder::mark_step() {
  record([&](Lock& lock) {
    ensure_take();
    log_.border(trace::ReportedBorder::What::StepEnd);
    steps_.step_reported();
    tell_border(lock);
  });
}

void Recorder::optimizer_was_called() {
  if (has_optimizer_.exchange(true)) return;
  locked([&](Lock&) { steps_.optimizer_was_called(); });
}

void Recorder::begin_phase(std::string_view name, std::span<const Knob> most) {
  record([&](Lock&) {
    ensure_take();
    log_.border(trace::ReportedBorder::What::PhaseBegin, name, most);
  });
}

void Recorder::end_phase() {
  record([&](Lock&) {
    ensure_take();
    log_.border(trace::ReportedBorder::What::PhaseEnd);
  });
}

void Recorder::charged(std::int64_t bytes) {
  record([&](Lock&) {
    ensure_take();
    log_.charged(bytes);
  });
}

void Recorder::name_parameter(Address at, std::string_view name) {
  record([&](Lock&) {
    Held* held = find(at);
    if (held == nullptr) {
      if (!settings_.in_takes_only) outside_names_[at.value] = *texts_.emplace(name).first;
      return;
    }
    set_name(*held, name);
    if (held->parameter) log_.has_role(held->id, trace::Role::Parameter, held->name);  // logged before without a name
  });
}

void Recorder::set_name(Held& held, std::string_view name) {
  held.name = *texts_.emplace(name).first;
  held.layer = *texts_.emplace(layer_of_parameter(name)).first;
}

void Recorder::begin_take(std::span<const Knob> knobs, std::span<const store::LiveStorage> before) {
  if (off_.load(std::memory_order_relaxed)) return;
  locked([&](Lock&) {
    for (const store::LiveStorage& storage : before) add(storage.at, storage.asked);
    in_take_ = true;
    refused_last_ = border_reported_ = false;
    take_began_ = Clock::now();
    steps_ = trace::StepFinder();
    if (settings_.takes_begin_in_midst) steps_.began_in_midst();
    if (has_optimizer_.load()) steps_.optimizer_was_called();
    log_.begin_take(knobs);
    for (const auto& [at, held] : held_) {  // the roles of the storages are logged again in each take
      if (held.parameter) log_.has_role(held.id, trace::Role::Parameter, held.name);
      if (held.gradient) log_.has_role(held.id, trace::Role::Gradient, {});
    }
  });
}

void Recorder::end_take() {
  if (off_.load(std::memory_order_relaxed)) return;
  const trace::ProcessFigures figures = settings_.figures();
  record([&](Lock&) {
    log_.end_take(figures, refused_last_ ? trace::Take::End::OutOfMemory : trace::Take::End::Program);
    in_take_ = false;
    if (settings_.in_takes_only) forget();
  });
}

void Recorder::changes_results(trace::ResultChange change) {
  record([&](Lock&) {
    if (std::ranges::find(head_.changes, change) == head_.changes.end()) head_.changes.push_back(std::move(change));
  });
}

void Recorder::asked_for(std::vector<Knob> at, std::vector<Choice> choices, std::vector<std::string> phases_left_out,
                         std::vector<std::string> sides) {
  record([&](Lock&) {
    head_.at = std::move(at);
    head_.choices = std::move(choices);
    head_.phases_left_out = std::move(phases_left_out);
    head_.sides = std::move(sides);
  });
}

// ---- the file

void Recorder::tell_border(Lock& lock) {
  if (border_reported_ || settings_.after_steps == 0 || !in_take_ || in_backward()) return;
  if (steps_.whole_steps() < settings_.after_steps) return;
  border_reported_ = true;
  lock.unlock();
  settings_.at_border();
  lock.lock();
}

std::string Recorder::contents() {
  std::ostringstream out;
  const trace::ProcessFigures figures = settings_.figures();
  record([&](Lock&) {
    head_.onednn = uses_onednn();
    log_.write(head_, figures, trace::Take::End::StepBorder, out);
  });
  return std::move(out).str();
}

void Recorder::write(trace::Take::End why) {
  if (settings_.file.empty() || off_.load(std::memory_order_relaxed)) return;
  if (settings_.is_recorded && !settings_.is_recorded()) return;
  const trace::ProcessFigures figures = settings_.figures();
  record([&](Lock&) { write_file(figures, why); });
}

void Recorder::write_file(const trace::ProcessFigures& figures, trace::Take::End why) {
  const Clock::time_point began = Clock::now();
  // A program that ends right after a refusal ended because of it.
  if (refused_last_ && why == trace::Take::End::Program) why = trace::Take::End::OutOfMemory;
  head_.onednn = uses_onednn();
  const Status done = replace_file(settings_.file, [&](std::ostream& out) {
    log_.write(head_, figures, why, out);
    return success();
  });
  written_ = Clock::now();
  writing_ = written_ - began;
  if (settings_.slot != nullptr) {
    settings_.slot->recorded.store(done ? 1 : 0);
    settings_.slot->recorded_steps.store(steps_.whole_steps());
  }
  if (done) return;
  const std::string text = "the trace is not written: " + done.error().text();
  if (settings_.slot != nullptr) settings_.slot->message.set(text);
  if (settings_.warn) settings_.warn(text);
}

}  // namespace ullage::runtime
