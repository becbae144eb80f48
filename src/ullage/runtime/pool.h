// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place bytes of the CPU device come from: torch's allocator interface over the pager and its store. It is put
// in at run time and stays for good, since storages keep pointers to their allocator.

#include "ullage/runtime/torch_compat.h"

#include "ullage/store/budget.h"
#include "ullage/store/pager.h"

#include <c10/core/Allocator.h>

#include <functional>
#include <string>
#include <utility>

namespace ullage::runtime {

class Pool final : public c10::Allocator {
 public:
  // Told of every refusal, before the exception is thrown: the figures, the op and the message in full.
  using OnRefusal = std::function<void(const store::Shortage&, const std::string& op, const std::string& message)>;

  // All three must live for ever, like the pool itself.
  Pool(store::Pager& pager, store::Budget& budget, OnRefusal on_refusal);

  // Called at the end of each allocation, on the thread that asked. Set before install().
  void on_allocation(std::function<void()> call) { on_allocation_ = std::move(call); }

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
  const OnRefusal on_refusal_;
  std::function<void()> on_allocation_ = [] {};
  c10::DeleterFnPtr previous_deleter_ = nullptr;
};

// The op that this thread is inside of, as the interceptor knows it, else as the call stack tells it.
std::string op_in_flight();

}  // namespace ullage::runtime
