// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pool is torch's allocator interface over the pager and its store. It is installed at run time and stays for good,
// because storages keep pointers to their allocator. On a card it serves the larger requests only (2 MiB and more),
// through the allocator that takes the place of PyTorch's (card_seam.h).

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

// Called on the thread that allocates or frees, with no lock held. Must not throw.
class PoolListener {
 public:
  virtual ~PoolListener() = default;
  virtual void allocated(Address at, Bytes bytes) = 0;  // the storage has been made
  // The storage is about to be freed. If `may_stay`, may return true: the listener then keeps it as its own storage.
  // `may_stay` is false for blocks of theirs_made(), which are freed anyway.
  virtual bool freeing(Address at, bool may_stay) = 0;
  // A request is refused; `message` is the full text. The exception is thrown next.
  virtual void refused(const store::Shortage&, const std::string& op, const std::string& message) = 0;
};

class Pool final : public c10::Allocator {
 public:
  struct Card {
    StorageMarks* marks = nullptr;  // null: the card's storages do not move
    CardWork* work = nullptr;
  };
  // All must live for ever, like the pool itself. There is one pool in a process. `card`: both null on the CPU.
  Pool(store::Pager& pager, store::Budget& budget, PoolListener& listener, c10::Device device, Card card);

  // Makes the pool torch's CPU allocator. What torch's previous allocator made is still freed by that allocator.
  void install();

  // Notes that a block of a card's pool is used on this stream too (Tensor.record_stream).
  void used(const void* at, const c10::Stream& on);
  // PyTorch's own allocator of the card has made a block, or is about to take one back. Such blocks never move, but the
  // listener is called for them as for the pool's own storages.
  void theirs_made(Address at, Bytes size);
  void theirs_goes(Address at);

  // Returns a storage of `size` bytes that owns the pool's block at `at` and frees it when it dies.
  c10::intrusive_ptr<c10::StorageImpl> storage_over(Address at, Bytes size);

  StorageMarks* marks() const { return card_.marks; }
  // Call it before a kernel gets storages that were brought back for it. Without it they keep the mark that they are
  // away, with which torch refuses to give out their pointers (storage_marks.h).
  void update_marks() const {
    if (card_.marks != nullptr) card_.marks->update();
  }

  // For ops that are run again. They run on the stream that is current then, which need not be the one that used these
  // bytes before. So if the card has several streams, this waits for the work on these bytes.
  void await_streams(Address at, Bytes size) const {
    if (card_.work != nullptr && card_.work->has_several_streams()) static_cast<void>(card_.work->done(at, size));
  }

  // Has the listener heard of the storage that begins at `at`? It has if that is in the pool's addresses or is a block
  // of theirs_made().
  bool knows(Address at) const;
  // All live storages that the listener has heard of.
  std::vector<store::LiveStorage> live() const;

  // In a child made by fork, whose parent keeps the card: nothing is freed from now on.
  void leave_to_parent() { in_child_ = true; }

  // Returns {p, p, deleter}: oneDNN and NNPACK assert that pointer and context are the same. Zero bytes give a null
  // pointer. Throws c10::OutOfMemoryError if the budget has no room; the process stays usable.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Returns the least budget with which this request would have been served.
  Bytes least_for(const store::Shortage& shortage) const;
  // Describes the shortage for the person.
  std::string message(const store::Shortage& shortage, const std::string& op) const;
  // Throws c10::OutOfMemoryError with that text, after telling the listener.
  [[noreturn]] void refuse(const store::Shortage& shortage, const std::string& op) const;
  // The same for bytes that are not a storage's (a decoder's buffer).
  [[noreturn]] void refuse(const store::Refusal& refusal, const std::string& what) const;

 private:
  static void free(void* at);
  void give_back(void* at);
  void tell_profiler(void* at, std::int64_t change) const;

  store::Pager& pager_;
  store::Budget& budget_;
  PoolListener& listener_;
  const c10::Device device_;
  const std::unique_ptr<StreamOrder> order_;  // null on the CPU
  const Card card_;
  bool in_child_ = false;
  mutable std::mutex lock_;
  std::unordered_map<std::uint64_t, Bytes> theirs_;  // blocks of theirs_made(), by address
  c10::DeleterFnPtr previous_deleter_ = nullptr;
};

// The name of the op that this thread is inside: from the interceptor, else from the call stack.
std::string op_in_flight();

}  // namespace ullage::runtime
