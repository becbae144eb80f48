// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place through which every op of torch passes. It is a boxed fallback on a dispatch key that torch does not
// use. A thread is armed if the key is in its thread-local key set. If somebody else has taken the key,
// RecordFunction is used instead. Intercepted are top-level ops, the ops inside composite ones, and those of backward,
// but not what a kernel calls inside.

#include "ullage/base/result.h"
#include "ullage/runtime/ops/op_call.h"

#include <memory>
#include <vector>

namespace ullage::runtime {

// Installed for as long as the object lives; only one at a time. Nothing is intercepted before enable().
class Interceptor final {
 public:
  enum class Way {
    // Exceptions of listeners reach the program. An op over lists of tensors runs in slices if its tensors do not fit
    // into memory at once (list_ops.h).
    DispatchKey,
    // Exceptions of listeners are swallowed, and the op runs all the same, because torch would not pass them on. No op
    // runs in slices.
    RecordFunction,
  };

  // `listeners`, in the order of their begin(), must outlive this object and every op in flight when it is destroyed.
  // Only tests set `wanted` to something else than DispatchKey. If somebody else has the key, RecordFunction is used.
  // System: an interceptor is installed already.
  static Result<std::unique_ptr<Interceptor>> install(std::vector<OpListener*> listeners,
                                                      Way wanted = Way::DispatchKey);
  ~Interceptor();
  Interceptor(const Interceptor&) = delete;
  Interceptor& operator=(const Interceptor&) = delete;

  Way way() const { return way_; }

  // Arms this thread at once, and other threads at their next arm_this_thread(). Also prepares Python
  // (prepare_python_later()). Any thread may call, under any lock.
  void enable();
  // Intercepts nothing any more. An armed thread takes the key out of its set at its next op.
  void disable();

  static bool enabled();
  // Arms this thread if interception is enabled. Takes a few nanoseconds if the thread is armed already. Called at each
  // allocation of the pool.
  static void arm_this_thread();
  // Would the next op of this thread be intercepted? It is, if the thread is armed and not inside an intercepted op. By
  // RecordFunction every thread counts as armed, and this is true inside an intercepted op too.
  static bool sees_this_thread();
  // The innermost intercepted op that this thread is inside; null: there is none. Valid until that op ends.
  static const OpCall* current();

 private:
  Interceptor(Way way, std::uint64_t callback) : way_(way), callback_(callback) {}

  const Way way_;
  const std::uint64_t callback_;  // its handle, if way_ is RecordFunction
};

// While this object lives, the ops of its thread are not intercepted. Listeners need this when they use torch
// themselves.
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
