// SPDX-License-Identifier: Apache-2.0
#pragma once

// One card, through its driver library, which is looked up where the process runs and never linked. What is used:
// virtual memory (addresses reserved apart from the bytes behind them, in pages of 2 MiB), copies to and from the host,
// pinned host memory, and what the card has left. Source: CUDA Driver API, "Virtual Memory Management".

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/cuda/driver_abi.h"
#include "ullage/store/pages.h"
#include "ullage/store/tier.h"

#include <atomic>
#include <memory>
#include <string>

namespace ullage::cuda {

// Whoever knows when the card was last given work on some bytes. Thread-safe.
class Work {
 public:
  virtual ~Work() = default;
  // Waits until the card has done all that it was given on these bytes. False: it is not known what that is.
  virtual bool done(Address at, Bytes size) = 0;
  // Pages were just mapped there: nothing has used them at these addresses.
  virtual void fresh(Address at, Bytes size) = 0;
};

// Thread-safe, from threads without a context too: works in the device's primary context, the one torch uses, and
// leaves each thread's current context as it was.
class Driver final : public store::Bridge {
 public:
  // NotFound: no driver here, or no such device. BadArgument: the card lacks what is used.
  static Result<std::unique_ptr<Driver>> open(int device, const std::string& library = "libcuda.so.1");
  ~Driver() override;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  struct Memory {
    Bytes free;  // of the whole card, whoever holds the rest
    Bytes total;
  };
  Result<Memory> memory();

  // Where the card is, "0000:3B:00.0"; for an instance of a divided card (MIG) where the whole one is.
  Result<std::string> bus_id();

  // The least that can be mapped; addresses and sizes below are multiples of it.
  Bytes page() const { return page_; }

  // Addresses with nothing behind them.
  Result<store::AddressRange> reserve(Bytes size);
  void unreserve(store::AddressRange range);

  // One page of the card's memory. Anything but success: `handle` means nothing; kOutOfMemory: the card is full.
  abi::Result create(abi::Handle& handle);
  void release(abi::Handle handle);
  // One page behind an address; nobody may touch it before allow().
  abi::Result map(Address at, abi::Handle handle);
  // All maps of the range; what was given to the card before must have ended (synchronize()).
  abi::Result unmap(Address at, Bytes size);
  // The device may read and write what is mapped in the range.
  abi::Result allow(Address at, Bytes size);

  // Waits until the device has done all that it was given.
  Status synchronize();
  // Until it has done what touches these bytes, as far as anybody knows that.
  Status synchronize(Address at, Bytes size);
  // Tells who knows: pages were just mapped there.
  void fresh(Address at, Bytes size);
  // Who knows, from now on; must outlive the driver's use. Null: nobody.
  void set_work(Work* work) { work_.store(work); }

  // After a synchronize() of these bytes.
  Status copy_out(Address from, void* into, Bytes size) override;
  Status copy_in(const void* from, Address into, Bytes size) override;

  // Locks host memory, so that copies go at full speed. System: the host has not so much that can be locked.
  Status pin(void* host, Bytes size);
  void unpin(void* host);

  // "out of memory (2)"
  std::string text(abi::Result result) const;
  Error error(const std::string& what, abi::Result result) const;

 private:
  struct Functions;
  class InContext;

  Driver() = default;
  Status begin(int device, const std::string& library);

  std::unique_ptr<Functions> call_;
  abi::Device device_ = 0;
  abi::Context context_ = nullptr;
  abi::Stream stream_ = nullptr;  // of copies
  std::atomic<Work*> work_{nullptr};
  Bytes page_;
};

}  // namespace ullage::cuda
