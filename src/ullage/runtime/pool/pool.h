// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place bytes of the budgeted device come from: torch's allocator interface over the pager and its store. It is
// put in at run time and stays for good, since storages keep pointers to their allocator. Of a card only the larger
// bytes are asked of it, by the allocator that stands before PyTorch's (card_seam.h).

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/pool/card_work.h"
#include "ullage/runtime/pool/storage_marks.h"
#include "ullage/runtime/pool/stream_order.h"
#include "ullage/store/budget.h"
#include "ullage/store/pager.h"

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace ullage::runtime {

// Told on the thread that asks, with no lock held. Must not throw.
class PoolListener {
 public:
  virtual ~PoolListener() = default;
  virtual void allocated(Address at, Bytes bytes) = 0;  // the storage is made
  // It is about to be given back. True, where it `may_stay`: the listener has taken it over, as a storage of its own.
  virtual bool freeing(Address at, bool may_stay) = 0;
  // A request is refused: the figures, the op and the message in full. The exception is thrown next.
  virtual void refused(const store::Shortage&, const std::string& op, const std::string& message) = 0;
};

class Pool final : public c10::Allocator {
 public:
  struct Card {
    StorageMarks* marks = nullptr;  // null: its storages do not move
    CardWork* work = nullptr;
  };
  // All must live for ever, like the pool itself. One in a process. `card`: nulls where the device is none.
  Pool(store::Pager& pager, store::Budget& budget, PoolListener& listener, c10::Device device, Card card);

  // Becomes torch's CPU allocator. Pointers of the one before go back to it.
  void install();

  // A block of the pool of a card is used on this stream too (Tensor.record_stream).
  void used(const void* at, const c10::Stream& on);
  // PyTorch's own allocator of the card has made a block, and is about to take it back: it never moves, and is told to
  // those who listen as any other.
  void theirs_made(Address at, Bytes size);
  void theirs_goes(Address at);

  // A storage of `size` bytes over the pool's block at `at`, which nobody else will give back.
  c10::intrusive_ptr<c10::StorageImpl> storage_over(Address at, Bytes size);

  StorageMarks* marks() const { return card_.marks; }
  // Before a kernel looks at what was brought back for it.
  void update_marks() const {
    if (card_.marks != nullptr) card_.marks->update();
  }

  // What is run again for the program runs on the stream that is current by then: where it has several, the work on
  // these bytes is waited for.
  void await_streams(Address at, Bytes size) const {
    if (card_.work != nullptr && card_.work->has_several_streams()) static_cast<void>(card_.work->done(at, size));
  }

  // Does a storage begin here that listeners were told of?
  bool knows(Address at) const;
  // All of them.
  std::vector<store::LiveStorage> live() const;

  // In a child by fork: the card is its parent's.
  void leave_to_parent() { in_child_ = true; }

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
  void give_back(void* at);
  void tell_profiler(void* at, std::int64_t change) const;

  store::Pager& pager_;
  store::Budget& budget_;
  PoolListener& listener_;
  const c10::Device device_;
  const std::unique_ptr<StreamOrder> order_;  // of a card; else null
  const Card card_;
  bool in_child_ = false;
  mutable std::mutex lock_;
  std::unordered_map<std::uint64_t, Bytes> theirs_;  // by address
  c10::DeleterFnPtr previous_deleter_ = nullptr;
};

// The op that this thread is inside of, as the interceptor knows it, else as the call stack tells it.
std::string op_in_flight();

}  // namespace ullage::runtime
