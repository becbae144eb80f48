// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reserves bytes of the budgeted device for a consumer outside the pool: a decoder, a kernel's scratch, another
// allocator, the planner. The pool makes room for them first.

#include "ullage/runtime/pool/pool.h"

#include "ullage/store/budget.h"
#include "ullage/store/pager.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ullage::runtime {

class Charges final {
 public:
  // All must live for ever. `note` is called with the bytes of each charge(), and with the negative bytes of each
  // discharge(). `last_resort`: as in store::Pager::Settings.
  Charges(store::Pager& pager, store::Budget& budget, const Pool& pool, std::function<void(std::int64_t)> note,
          std::function<bool(bool finally)> last_resort)
      : pager_(pager), budget_(budget), pool_(pool), note_(std::move(note)), last_resort_(std::move(last_resort)) {}

  // Reserves `bytes` until discharge(). Throws c10::OutOfMemoryError if no room can be made; its text names `what`.
  void charge(Bytes bytes, const std::string& what);
  void discharge(Bytes bytes);

  // As charge() and discharge(), but no take records it: for bytes that another run of the same program need not take.
  void reserve(Bytes bytes, const std::string& what);
  void release(Bytes bytes) { budget_.discharge(bytes); }

  // Reserves `bytes` until release(). False: no room can be made, and nothing is reserved.
  bool grant(Bytes bytes) { return set_aside(bytes) == Bytes{}; }

  // Reserves `bytes` for planning; the unused part of the outside's reserve counts towards them. Beside: the pool may
  // still hold what ops have needed at once so far, so the program may run meanwhile. Alone: the pool may hold less
  // than that, so the program must wait at its border of steps. None: even so there is no room, and nothing is
  // reserved.
  enum class PlanningRoom { None, Alone, Beside };
  PlanningRoom begin_planning(Bytes bytes);
  void end_planning();
  // Returns what the pool's limit, which is `limit` now, will be when the present step has ended. By then the process
  // holds `more` outside the pool than now, the reserve follows what was outside in the last steps, and what other
  // processes were expected to take for a moment is the pool's again.
  Bytes limit_after_step(Bytes limit, Bytes more) const;

 private:
  // By how much the pool's limit sinks if the process holds `more` outside the pool than now. The limit already leaves
  // room for what is outside now, or for what is reserved if that is more.
  Bytes limit_sinks_by(Bytes more) const;
  Bytes set_aside(Bytes bytes);

  store::Pager& pager_;
  store::Budget& budget_;
  const Pool& pool_;
  const std::function<void(std::int64_t)> note_;
  const std::function<bool(bool finally)> last_resort_;
  Bytes of_planning_;
};

}  // namespace ullage::runtime
