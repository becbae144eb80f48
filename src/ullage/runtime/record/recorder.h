// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records what the program does with memory, whatever the pager does. That is the storages that it makes and frees, the
// tensors that ops read and write, saved tensors, parameters, gradients and steps. The record is a trace::EventLog. The
// file is written when the process ends, or is stopped at a border of steps (`at_border`). It is also written when the
// budget is lifted, and when a request is refused; if refusals are frequent, not each writes it.

#include "ullage/runtime/ops/op_call.h"
#include "ullage/runtime/ops/saved_tensors.h"
#include "ullage/runtime/record/op_uses.h"

#include "ullage/store/ledger.h"
#include "ullage/store/slabs.h"
#include "ullage/trace/file/event_log.h"
#include "ullage/trace/take/step_finder.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ullage::runtime {

class Recorder final : public OpListener, public SavedListener {
 public:
  struct Settings {
    std::string file;  // absolute path; replaced as a whole. Empty: no file, the caller asks for contents()
    std::string device = "cpu";
    bool takes_begin_by_call = false;   // takes begin with begin_take() only; else one begins with the first event
    bool in_takes_only = false;         // outside takes no event is looked at, to save time; ended takes are forgotten
    bool takes_begin_in_midst = false;  // a take may begin in the middle of a step
    std::vector<trace::ResultChange> changes{};  // changes of the program's results that are known at the start
    bool lines = false;                          // record the Python line that called each op
    std::uint64_t after_steps = 0;    // whole steps of a take after which `at_border` is called, once a take; 0: never
    std::function<void()> at_border;  // called at a border of steps, on the program's thread
    // Whether this process still is the one that is recorded. If not, no file is written. Empty: it is.
    std::function<bool()> is_recorded;
    // Waits until the device has run the op, so that times are the kernels'. Empty: ops have run when they end.
    std::function<void()> synchronize;
    store::LedgerSlot* slot = nullptr;               // gets what became of the file; must outlive this; may be null
    std::function<trace::ProcessFigures()> figures;  // of the process as it is now; must be set
    std::function<void(const std::string&)> warn;    // a line for the person; may be empty
  };

  explicit Recorder(Settings settings);

  // Called by the pool, on the thread that asks: after a storage is made, before one is freed, at a refused request.
  void allocated(Address at, Bytes bytes);
  void freed(Address at);
  void refused(Bytes requested);

  // The recorder listens inside of paging, so that its times are the kernels'.
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  void saved(const StorageUse& use, SavedKind kind) override;
  void unpacking(const StorageUse&) override {}
  void released(Address begin) noexcept override;

  // Called for what the program reports through runtime.h, for the calls of its optimizers (the observer of planning
  // alone), and for charges.
  void mark_step();
  // Cheap after the first call.
  void optimizer_was_called();
  void begin_phase(std::string_view name, std::span<const Knob> most);
  void end_phase();
  void charged(std::int64_t bytes);
  void name_parameter(Address at, std::string_view name);
  // `before`: live storages that were made while nothing was looked at.
  void begin_take(std::span<const Knob> knobs, std::span<const store::LiveStorage> before = {});
  void end_take();
  // Notes a change of the program's results.
  void changes_results(trace::ResultChange change);
  // Sets the head of the file of a rehearsal (trace::TraceFile). The head has the sizes to predict, and the options
  // that change what the program does. It has the phases that are skipped, and the knobs that are sides of one picture.
  void asked_for(std::vector<Knob> at, std::vector<Choice> choices, std::vector<std::string> phases_left_out,
                 std::vector<std::string> sides);

  // Writes the file at the end of the process.
  void finish() { write(trace::Take::End::Program); }
  // The content of the file if it were written now, at a border of steps.
  std::string contents();
  // Where steps of the take end: the ordinals of the first ops behind them. Empty unless an optimizer updates
  // parameters that are not the pool's (mapped files of weights). With Settings::in_takes_only the recording lacks
  // those, so its reader cannot find the steps.
  std::vector<std::uint64_t> unrecorded_step_ends();
  void write(trace::Take::End why);
  // The child records nothing.
  void after_fork_in_child() { off_.store(true); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  // A live storage of the pool, or a parameter outside it.
  struct Held {
    StorageId id;
    Bytes bytes;
    bool outside = false;     // a parameter that is not the pool's, such as one of a mapped file; then `bytes` is 0
    bool parameter = false;   // an op used it as one
    bool gradient = false;    // an op's leaf had it as .grad
    std::uint32_t saves = 0;  // how often autograd holds it
    std::string_view name;    // of a parameter; empty unless the program named it
    std::string_view layer;   // of a parameter; empty unless the program named it
  };

  // Calls body(lock) with the lock held, unless recording is off. If the recorder's own code throws (no memory),
  // recording stops and the program goes on.
  template <class F>
  void record(const F& body) noexcept {
    if (looks()) locked(body);
  }
  template <class F>
  void locked(const F& body) noexcept {
    try {
      Lock lock(lock_);
      body(lock);
    } catch (...) {
      off_.store(true);
      if (settings_.slot != nullptr) settings_.slot->recorded.store(0);
    }
  }

  bool looks() const {
    return !off_.load(std::memory_order_relaxed) &&
           (!settings_.in_takes_only || in_take_.load(std::memory_order_relaxed));
  }
  trace::EventLog::Instant now() const;
  void ensure_take();
  Held* find(Address at);
  // The parameter that stands there, for the finder of steps; none: no op used a parameter there.
  std::optional<StorageId> parameter_at(Address at);
  void add(Address at, Bytes bytes);
  Held* meet_outside(Address at);
  void set_name(Held& held, std::string_view name);
  void forget();
  trace::OutsideReads outside_reads(const OpCall& call);
  OpId log_op(const OpCall& call, OpUses& uses, std::string_view line);
  void meet_leaves(const OpUses& uses);
  void tell_steps(const OpCall& call, const OpUses& uses);
  std::string_view layer_of(const OpUses& uses);
  void log_refusal(Bytes requested);
  void tell_border(Lock& lock);
  void write_file(const trace::ProcessFigures& figures, trace::Take::End why);

  const Settings settings_;
  std::atomic<bool> off_{false};  // stays true: in a forked child, or after an exception of the recorder's own

  std::mutex lock_;  // guards all that follows
  trace::EventLog log_;
  trace::TraceFile head_;
  trace::StepFinder steps_;
  std::atomic<bool> has_optimizer_{false};  // optimizer_was_called()
  std::atomic<bool> in_take_{false};
  bool border_reported_ = false;  // `at_border` was called in this take
  bool refused_last_ = false;     // a request was refused, and no op has begun since
  Clock::duration writing_{};     // how long the last writing of the file took
  Clock::time_point take_began_;
  Clock::time_point written_;
  std::unordered_map<std::uint64_t, Held> held_;  // by address
  Bytes live_;
  // Parameters that are not the pool's, by address, for Settings::in_takes_only.
  std::unordered_map<std::uint64_t, StorageId> outside_;
  // Names that parameters outside the pool were given before an op used them, by address.
  std::unordered_map<std::uint64_t, std::string_view> outside_names_;
  bool updates_outside_ = false;           // an op outside backward wrote one of them
  std::unordered_set<std::string> texts_;  // names; none is ever erased, because the log knows texts by their addresses
};

}  // namespace ullage::runtime
