// SPDX-License-Identifier: Apache-2.0
#pragma once

// One process under a budget: a device's pages, budget, store, pool, watch and recorder, made together and never taken
// apart. No torch here.

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
  // For tests of the pager: what makes its every case happen.
  enum class Stress {
    None,
    Ops,     // everything is evicted before every op
    Thread,  // a thread evicts everything all the time, and no op is intercepted: faults alone bring things back
    Strict,  // as Ops, and an access that no op announced ends the process, as it would on a device without faults
  };

  struct Settings {
    Bytes budget;                       // stated; zero: unlimited
    Bytes held_once;                    // the most before now, which the budget is to cover too; zero: it need not
    store::SpillPlace spill;            // where tensors go that do not fit; `most` of zero: nowhere
    std::string record_file;            // where the trace goes; empty: nothing is recorded
    std::uint64_t stop_after = 0;       // whole steps after which the trace is written and the process ends; 0: never
    std::function<void()> end_process;  // does not return; wanted where stop_after is set
    std::string rehearsal;              // see Session::rehearsal()
    std::string plan_file;              // a plan to begin with; empty: one is made when it is needed
    bool plans = true;                  // false: everything is decided on demand
    bool waits_for_plan = false;        // for tests: no step passes before the plan is there
    Stress stress = Stress::None;
    store::LedgerSlot* slot = nullptr;  // where figures go; null: nowhere
    // Called in each child made by fork: where its refusals go, null: nowhere. Empty: nowhere.
    std::function<store::LedgerSlot*()> slot_of_child;
    store::Tree* tree = nullptr;                   // the other processes that share the budget; null: none
    std::function<void(const std::string&)> warn;  // a line for the person; empty: none
    std::function<void(const std::string&)> say;   // likewise, of what goes well
    // Ends the process: bytes that a thread needs this instant cannot be brought back; `infeasible` where the budget is
    // too small for that. Empty: std::abort.
    std::function<void(const std::string& why, bool infeasible)> give_up;
  };

  // Of the process's memory: puts the pool in and starts the watch. BadArgument when the process holds more than the
  // budget already.
  static Result<Session*> start(Settings settings);
  // Of any device; whoever asks a card's pool() puts it in.
  static Result<Session*> start_on(Settings settings, std::unique_ptr<BudgetedDevice> device);
  // The session of this process, or null.
  static Session* current();

  virtual ~Session();
  virtual const store::Store& store() const = 0;
  virtual Bytes budget() const = 0;
  // What the process holds of the device, as the budget counts it.
  virtual Bytes held() = 0;
  virtual Pool& pool() = 0;
  // From now on. Zero: unlimited, until it is stated again; what was recorded so far is then written. BadArgument where
  // less is stated than what stands outside the pool: the budget stays as it was.
  virtual Status restate(Bytes budget) = 0;
  virtual void mark_step() = 0;
  // Of the process's memory, outside the pool.
  virtual void charge(Bytes bytes, const std::string& what) = 0;
  virtual void discharge(Bytes bytes) = 0;
  // Another allocator of the device is about to take these for good; false: no room can be made for them.
  virtual bool grant(Bytes bytes) = 0;
  // Gives back what no tensor holds.
  virtual void drop_idle() = 0;
  // The device's work is captured from now on, or was until now (store::Pager::begin_capture).
  virtual void captures(bool begin) = 0;
  virtual store::LedgerSlot* slot() = 0;
  // Null: nothing is recorded.
  virtual Recorder* recorder() = 0;
  // What a shipped program is to try instead of working (rehearsal_sizes.h); empty: it works.
  virtual const std::string& rehearsal() const = 0;
};

}  // namespace ullage::runtime
