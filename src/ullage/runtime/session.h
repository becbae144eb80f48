// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session keeps this process within a budget. Its parts are the pages of one device, the budget, store, pager and
// pool, the recorder, and the watch (the thread that measures the process every few milliseconds). They are made
// together, once in a process, and live until it ends. This header includes no torch.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/store/ledger.h"
#include "ullage/store/spill_folder.h"
#include "ullage/store/store.h"
#include "ullage/store/tree.h"
#include "ullage/trace/take/take.h"

#include <functional>
#include <cstdint>
#include <memory>
#include <string>

namespace ullage::runtime {

class BudgetedDevice;
class Pool;
class Recorder;

class Session {
 public:
  // For tests of the pager: ways to make every case happen.
  enum class Stress {
    None,
    Ops,     // everything is evicted before every op
    Thread,  // a thread evicts everything all the time, and no op is intercepted: page faults alone restore storages
    Strict,  // as Ops, and an access that no op announced ends the process, as on a device without page faults
  };

  struct Settings {
    Bytes budget;                       // as the person stated it; zero: unlimited
    Bytes held_once;                    // peak of the process before now; the budget must cover it too; zero: need not
    store::SpillPlace spill;            // where evicted tensors go; `most` of zero: nothing is spilled
    std::string record_file;            // where the trace goes; empty: nothing is recorded
    std::function<bool()> is_recorded;  // as in Recorder::Settings
    std::uint64_t stop_after = 0;       // whole steps after which the trace is written and the process ends; 0: never
    std::function<void()> end_process;  // must not return; required if stop_after is set
    std::string rehearsal;              // see Session::rehearsal()
    std::string plan_file;              // a plan to begin with; empty: one is made when it is needed
    bool plans = true;                  // false: no plans; the pager decides on demand
    bool counts_half = false;           // count the ops that run in bf16 (LedgerSlot::half_ops)
    bool casts_if_needed = false;       // decide which steps are cast (casts())
    bool waits_for_plan = false;        // for tests: the program waits while its plan is made
    Stress stress = Stress::None;
    store::LedgerSlot* slot = nullptr;  // the process's place in the ledger, where its figures go; null: nowhere
    // Called before a request is refused, on its thread with no lock held. Takes back granted bytes (grant()) that are
    // unused, and returns their number. Empty: nothing is taken back.
    std::function<Bytes()> take_back;
    // Called in each child made by fork. Returns the slot for the child's refusals; null or empty: it has none.
    std::function<store::LedgerSlot*()> slot_of_child;
    store::Tree* tree = nullptr;                   // the other processes that share the budget; null: none
    std::function<void(const std::string&)> warn;  // writes a warning for the person; empty: none
    std::function<void(const std::string&)> say;   // writes a line about what goes well; empty: none
    // Ends the process when bytes that a faulting thread needs cannot be brought back. `infeasible`: because the budget
    // is too small. Empty: std::abort.
    std::function<void(const std::string& why, bool infeasible)> give_up;
  };

  // Starts a session on the process's memory: installs the pool and starts the watch. BadArgument if the budget is too
  // small. It must cover what the process holds, what its libraries will still take (BudgetedDevice::warm_up()), and
  // the margin of 8 MiB. It must cover Settings::held_once and the margin too.
  static Result<Session*> start(Settings settings);
  // The same for any device. On a card this does not install the pool. There Ullage's allocator stands before PyTorch's
  // caching allocator, and calls pool() for the requests that the pool serves.
  static Result<Session*> start_on(Settings settings, std::unique_ptr<BudgetedDevice> device);
  // The session of this process, or null.
  static Session* current();

  virtual ~Session();
  virtual const store::Store& store() const = 0;
  virtual Bytes budget() const = 0;
  // Bytes of the device that the process holds, as the budget counts them.
  virtual Bytes held() = 0;
  virtual Pool& pool() = 0;
  // Changes the budget. Zero: unlimited until the next call; what was recorded so far is then written. BadArgument if
  // `budget` does not cover the bytes outside the pool and the margin; the old budget then stays.
  virtual Status restate(Bytes budget) = 0;
  // Are forward passes to be cast to bf16 now? Only under Settings::casts_if_needed.
  virtual bool casts() const = 0;
  // The program reports that a step has ended. From the first call on, steps are counted by these calls alone, and no
  // longer by the calls of its optimizers.
  virtual void mark_step() = 0;
  // Reserves `bytes` of the process's memory for a consumer outside the pool, until discharge(). Throws
  // c10::OutOfMemoryError, which names `what`, if no room can be made. No effect if the device is a card, because then
  // the process's memory has no budget.
  virtual void charge(Bytes bytes, const std::string& what) = 0;
  virtual void discharge(Bytes bytes) = 0;
  // This thread is about to touch `bytes` of the process's memory outside the pool: has the own pool and those of the
  // other processes give way. False, only if the request `may_fail`: it must, because the budget would be passed
  // (store::Tree).
  virtual bool make_way(Bytes bytes, bool may_fail) = 0;
  // This thread is about to start another program: makes room for what such a program is likely to take.
  virtual void make_way_for_a_program() = 0;
  // The program has mapped a file for itself alone.
  virtual void file_mapped(Address at, Bytes size, bool writable) = 0;
  // The program is about to take away whatever is mapped at [at, at + size). True: part of a file is. Then call
  // file_unmapped() once it has gone; until then its pages are counted as they are.
  virtual bool unmaps_a_file(Address at, Bytes size) = 0;
  virtual void file_unmapped(Address at, Bytes size) = 0;
  // Reserves `bytes` for another allocator of the device. Settings::take_back gives them up again. False: no room can
  // be made for them.
  virtual bool grant(Bytes bytes) = 0;
  // Gives back the pages that no tensor holds.
  virtual void drop_idle() = 0;
  // Capture of the device's work (a CUDA graph) begins or has ended; see store::Pager::begin_capture().
  virtual void captures(bool begin) = 0;
  // The process's slot in the ledger; null: it has none.
  virtual store::LedgerSlot* slot() = 0;
  // Null: nothing is recorded.
  virtual Recorder* recorder() = 0;
  // For a shipped program: the sizes at which it does a few steps on made-up data, in place of its real work
  // (rehearsal_sizes.h). Empty: it does its real work.
  virtual const std::string& rehearsal() const = 0;
};

}  // namespace ullage::runtime
