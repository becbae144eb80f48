// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place bytes of the CPU device come from: torch's allocator interface over a store. It is put in at run time
// and stays for good, since storages keep pointers to their allocator.

#include "ullage/runtime/torch_compat.h"

#include "ullage/store/budget.h"
#include "ullage/store/store.h"

#include <c10/core/Allocator.h>

#include <functional>
#include <string>

namespace ullage::runtime {

class Pool final : public c10::Allocator {
 public:
  // Told of every refusal, before the exception is thrown: the figures, the op and the message in full.
  using OnRefusal = std::function<void(const store::Refusal&, const std::string& op, const std::string& message)>;

  // All three must live for ever, like the pool itself.
  Pool(store::Store& store, store::Budget& budget, OnRefusal on_refusal);

  // Becomes torch's CPU allocator. Pointers of the one before go back to it. Once in a process.
  void install();

  // {p, p, deleter}: oneDNN and NNPACK assert that pointer and context are one. Zero bytes give a null pointer.
  // Throws c10::OutOfMemoryError where the budget has no room; the process stays usable.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Throws c10::OutOfMemoryError with the refusal in words.
  [[noreturn]] void refuse(const store::Refusal& refusal, const std::string& op) const;

 private:
  static void free(void* at);
  std::string message(const store::Refusal& refusal, const std::string& op) const;
  void tell_profiler(void* at, std::int64_t change) const;

  store::Store& store_;
  store::Budget& budget_;
  const OnRefusal on_refusal_;
  c10::DeleterFnPtr previous_deleter_ = nullptr;
};

}  // namespace ullage::runtime
