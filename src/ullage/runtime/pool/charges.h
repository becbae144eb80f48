// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes of the budgeted device that somebody beside the pool is about to take: a decoder, a kernel's scratch, another
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
  // All must live for ever. `note` is told of what charge() and discharge() did, in bytes. `last_resort`: as the
  // pager's.
  Charges(store::Pager& pager, store::Budget& budget, const Pool& pool, std::function<void(std::int64_t)> note,
          std::function<bool()> last_resort)
      : pager_(pager), budget_(budget), pool_(pool), note_(std::move(note)), last_resort_(std::move(last_resort)) {}

  // Sets `bytes` aside until discharge(). Throws c10::OutOfMemoryError where no room can be made; `what` is for its
  // text.
  void charge(Bytes bytes, const std::string& what);
  void discharge(Bytes bytes);

  // As charge() and discharge(), but nobody is told of it.
  void reserve(Bytes bytes, const std::string& what);
  void release(Bytes bytes) { budget_.discharge(bytes); }

  // Sets `bytes` aside for good. False: no room can be made, and nothing is set aside.
  bool grant(Bytes bytes) { return set_aside(bytes) == Bytes{}; }

  // Sets aside what planning takes, beside what ops have needed at once so far. What is kept free for the outside and
  // not used will do too. False: there is no room, and nothing is set aside.
  bool begin_planning(Bytes bytes);
  void end_planning();

 private:
  Bytes set_aside(Bytes bytes);

  store::Pager& pager_;
  store::Budget& budget_;
  const Pool& pool_;
  const std::function<void(std::int64_t)> note_;
  const std::function<bool()> last_resort_;
  Bytes of_planning_;
};

}  // namespace ullage::runtime
