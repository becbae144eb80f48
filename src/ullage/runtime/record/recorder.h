// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes down what the program does with memory, whatever the pager does meanwhile: storages as the program makes and
// frees them, ops with what they read and write, what autograd saves, what is a parameter and what a gradient, steps.
// The record is trace::EventLog; the file is written at the end, at each request that is refused, or at a step's border
// where the process is to end there.

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
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ullage::runtime {

class Recorder final : public OpListener, public SavedListener {
 public:
  struct Settings {
    std::string file;  // absolute; replaced as a whole. Empty: what is seen is asked for (contents())
    std::string device = "cpu";
    bool takes_are_told = false;        // the program is rehearsed: what lies outside its takes is not written down
    bool in_takes_only = false;         // nor looked at, so that it costs nothing; a take is forgotten when it ends
    bool takes_begin_in_midst = false;  // of a step
    bool lines = false;                 // of a Python program, that call the ops
    std::uint64_t after_steps = 0;    // whole steps of a take after which `at_border` is called, once a take; 0: never
    std::function<void()> at_border;  // at a border of steps, on the program's thread
    std::function<void()>
        synchronize;  // waits until the device has run the op, so that times are kernels'; empty: it has
    store::LedgerSlot* slot = nullptr;
    std::function<trace::ProcessFigures()> figures;
    std::function<void(const std::string&)> warn;  // a line for the person; may be empty
  };

  explicit Recorder(Settings settings);

  // By the pool, on the thread that asks: after a storage is made, before one is given back, when a request is refused.
  void allocated(Address at, Bytes bytes);
  void freed(Address at);
  void refused(Bytes requested);

  // Innermost of the listeners, so that its times are the kernel's.
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  void saved(const StorageUse& use, SavedKind kind) override;
  void unpacking(const StorageUse&) override {}
  void released(Address begin) noexcept override;

  // What the program tells (runtime.h).
  void mark_step();
  void begin_phase(std::string_view name, std::span<const Knob> most);
  void end_phase();
  void charged(std::int64_t bytes);
  void name_parameter(Address at, std::string_view name);
  // `before`: storages that were made while nobody looked.
  void begin_take(std::span<const Knob> knobs, std::span<const store::LiveStorage> before = {});
  void end_take();
  void asked_for(std::vector<Knob> at, std::vector<Choice> choices, std::vector<std::string> phases_left_out,
                 std::vector<std::string> sides);

  // Writes the file; at the process's end.
  void finish() { write(trace::Take::End::Program); }
  // The file as it would be written now, at a border of steps.
  std::string contents();
  void write(trace::Take::End why);
  // The child records nothing.
  void after_fork_in_child() { off_.store(true); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  // A live storage of the pool.
  struct Held {
    StorageId id;
    Bytes bytes;
    bool parameter = false;   // met as one
    bool gradient = false;    // likewise
    std::uint32_t saves = 0;  // that autograd holds
    std::string_view name;    // of a parameter, where the program told it
    std::string_view layer;   // likewise
  };

  // Whatever comes in: body(lock), with the lock held; nothing once recording is over. After an exception of its own
  // (no memory) the recorder gives up, not the program.
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
  void add(Address at, Bytes bytes);
  void forget();
  OpId log_op(const OpCall& call, OpUses& uses, std::string_view line);
  void meet_leaves(const OpUses& uses);
  void tell_steps(const OpCall& call, const OpUses& uses);
  std::string_view layer_of(const OpUses& uses);
  void log_refusal(Bytes requested);
  void tell_border(Lock& lock);
  void write_file(const trace::ProcessFigures& figures, trace::Take::End why);

  const Settings settings_;
  std::atomic<bool> off_{false};  // for good: in a forked child, or after an exception of its own

  std::mutex lock_;  // of all that follows
  trace::EventLog log_;
  trace::TraceFile head_;
  trace::StepFinder steps_;
  std::atomic<bool> in_take_{false};
  bool border_told_ = false;   // of this take
  bool refused_last_ = false;  // a request was refused, and no op has begun since
  Clock::duration writing_{};  // what the last writing of the file took
  Clock::time_point take_began_;
  Clock::time_point written_;
  std::unordered_map<std::uint64_t, Held> held_;  // by address
  Bytes live_;
  std::unordered_set<std::string> texts_;  // names; the log knows texts by their addresses, so none is ever taken away
};

}  // namespace ullage::runtime
