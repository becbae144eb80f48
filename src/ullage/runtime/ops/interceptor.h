// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place through which every op of torch passes: a boxed fallback on a dispatch key that torch keeps spare, put
// into the thread-local key set of each thread that takes part; RecordFunction where somebody else took the key. Seen
// are top-level ops, the ops inside composite ones, and those of backward; not seen is what a kernel calls inside.

#include "ullage/base/result.h"
#include "ullage/runtime/ops/op_call.h"

#include <memory>
#include <vector>

namespace ullage::runtime {

// Installed as long as it lives; one at a time. Made disabled: nothing is intercepted before enable().
class Interceptor final {
 public:
  enum class Way {
    DispatchKey,     // exceptions of listeners reach the program
    RecordFunction,  // torch swallows exceptions thrown there: the op runs all the same, list ops run whole
  };

  // `listeners`, in the order of their begin(), must outlive the guard and every op in flight when it is destroyed.
  // `wanted` is DispatchKey but in tests; the way taken differs where somebody has the key. System: one is installed
  // already.
  static Result<std::unique_ptr<Interceptor>> install(std::vector<OpListener*> listeners,
                                                      Way wanted = Way::DispatchKey);
  ~Interceptor();
  Interceptor(const Interceptor&) = delete;
  Interceptor& operator=(const Interceptor&) = delete;

  Way way() const { return way_; }

  // From now on threads are armed: this one at once, others at their next arm_this_thread(). Lets Python prepare itself
  // (python_process.h). From any thread, under any lock.
  void enable();
  // Threads leave at their next op.
  void disable();

  static bool enabled();
  // Lets this thread take part if interception is enabled; a few nanoseconds when it does already. The pool calls it at
  // each allocation.
  static void arm_this_thread();
  // Of this thread, as torch will look at it: armed, and not inside an op that is seen.
  static bool sees_this_thread();
  // The op that this thread is inside of, innermost; null outside any. Valid until that op ends.
  static const OpCall* current();

 private:
  Interceptor(Way way, std::uint64_t callback) : way_(way), callback_(callback) {}

  const Way way_;
  const std::uint64_t callback_;  // of RecordFunction
};

// On a thread where this lives ops pass unseen: for the listeners' own use of torch.
class UnseenOps final {
 public:
  UnseenOps();
  ~UnseenOps();
  UnseenOps(const UnseenOps&) = delete;
  UnseenOps& operator=(const UnseenOps&) = delete;

 private:
  bool was_;
};

}  // namespace ullage::runtime
