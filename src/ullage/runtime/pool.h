// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place bytes of the CPU device come from: torch's allocator interface over the pager and its store. It is put
// in at run time and stays for good, since storages keep pointers to their allocator.

#include "ullage/runtime/torch_compat.h"

#include "ullage/store/budget.h"
#include "ullage/store/pager.h"

#include <c10/core/Allocator.h>

#include <string>

namespace ullage::runtime {

// Told on the thread that asks, with no lock held. Must not throw.
class PoolListener {
 public:
  virtual ~PoolListener() = default;
  virtual void allocated(Address at, Bytes bytes) = 0;  // the storage is made
  virtual void freeing(Address at) = 0;                 // it is about to be given back
  // A request is refused: the figures, the op and the message in full. The exception is thrown next.
  virtual void refused(const store::Shortage&, const std::string& op, const std::string& message) = 0;
};

class Pool final : public c10::Allocator {
 public:
  // All must live for ever, like the pool itself.
  Pool(store::Pager& pager, store::Budget& budget, PoolListener& listener);

  // Becomes torch's CPU allocator. Pointers of the one before go back to it. Once in a process.
  void install();

  // {p, p, deleter}: oneDNN and NNPACK assert that pointer and context are one. Zero bytes give a null pointer.
  // Throws c10::OutOfMemoryError where the budget has no room; the process stays usable.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // The shortage in words.
  std::string message(const store::Shortage& shortage, const std::string& op) const;
  // Throws c10::OutOfMemoryError with them.
  [[noreturn]] void refuse(const store::Shortage& shortage, const std::string& op) const;
  // For what is no storage (a decoder's buffer).
  [[noreturn]] void refuse(const store::Refusal& refusal, const std::string& what) const;

 private:
  static void free(void* at);
  void tell_profiler(void* at, std::int64_t change) const;

  store::Pager& pager_;
  store::Budget& budget_;
  PoolListener& listener_;
  c10::DeleterFnPtr previous_deleter_ = nullptr;
};

// The op that this thread is inside of, as the interceptor knows it, else as the call stack tells it.
std::string op_in_flight();

}  // namespace ullage::runtime
