// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives access to one card by its driver library, which is looked up at run time and never linked. It uses virtual
// memory: addresses are reserved first, and pages of 2 MiB are mapped there later. It also copies to and from the host,
// locks host memory, and asks what the card has left. Source: CUDA Driver API, "Virtual Memory Management".

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/cuda/driver_abi.h"
#include "ullage/store/driver_calls.h"
#include "ullage/store/pages.h"
#include "ullage/store/tier.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace ullage::cuda {

// Knows when the card was last given work on some bytes. Thread-safe.
class Work {
 public:
  virtual ~Work() = default;
  // Waits until the card has done all work on these bytes that it was given. False: that work is not known.
  virtual bool done(Address at, Bytes size) = 0;
  // Pages were just mapped at these addresses, so no work has used them there yet.
  virtual void fresh(Address at, Bytes size) = 0;
};

// Thread-safe, on threads without a context too. Works in the device's primary context, the one that torch uses, and
// leaves each thread's current context as it was.
class Driver final : public store::Bridge {
 public:
  // NotFound: there is no driver here, or no such device. BadArgument: the driver lacks a function that is used.
  // System: the driver refused (a card without virtual memory management, for one).
  static Result<std::unique_ptr<Driver>> open(int device, const std::string& library = "libcuda.so.1");
  ~Driver() override;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  struct Memory {
    Bytes free;  // of the whole card, all processes included
    Bytes total;
  };
  Result<Memory> memory();

  // The card's PCI address, such as "0000:3B:00.0"; for an instance of a divided card (MIG) that of the whole card.
  Result<std::string> bus_id();

  // The least that can be mapped. Addresses and sizes of reserve(), map(), unmap() and allow() are multiples of it.
  Bytes page() const { return page_; }

  // Reserves addresses, with nothing mapped at them.
  Result<store::AddressRange> reserve(Bytes size);
  void unreserve(store::AddressRange range);

  // Allocates one page of the card's memory. Unless it returns kSuccess, `handle` is undefined. kOutOfMemory: the card
  // is full.
  abi::Result create(abi::Handle& handle);
  void release(abi::Handle handle);
  // Maps one page at an address; nobody may touch it before allow().
  abi::Result map(Address at, abi::Handle handle);
  // Unmaps the pages of the range. The card's work on them must have ended (synchronize()).
  abi::Result unmap(Address at, Bytes size);
  // Lets the device read and write what is mapped in the range.
  abi::Result allow(Address at, Bytes size);

  // Calls of the five functions above so far, failed ones included.
  store::DriverCalls calls() const;

  // Waits until the device has done all work that it was given. An error may be that of any earlier kernel.
  Status synchronize();
  // Waits until the device has done the work on these bytes; all work if there is no Work or it does not know.
  Status synchronize(Address at, Bytes size);
  // Tells the Work that pages were just mapped there.
  void fresh(Address at, Bytes size);
  // Sets the Work to ask from now on. It must live as long as this driver is used. Null: none is asked.
  void set_work(Work* work) { work_.store(work); }

  // As Bridge::copy_out() and copy_in(). BadArgument: the gate said Never.
  Status copy_out(Address from, void* into, Bytes size, store::CopyGate* gate = nullptr) override;
  Status copy_in(const void* from, Address into, Bytes size) override;

  // Locks host memory, so that copies go at full speed. System: the host cannot lock so much.
  Status pin(void* host, Bytes size);
  void unpin(void* host);

  // Returns the driver's text and the number, such as "out of memory (2)".
  std::string text(abi::Result result) const;
  Error error(const std::string& what, abi::Result result) const;

 private:
  struct Functions;
  class InContext;

  Driver() = default;
  Status begin(int device, const std::string& library);
  void count(store::DriverCall call) {
    called_[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed);
  }

  std::unique_ptr<Functions> call_;
  abi::Device device_ = 0;
  abi::Context context_ = nullptr;
  abi::Stream stream_ = nullptr;  // for copies
  std::atomic<Work*> work_{nullptr};
  std::array<std::atomic<std::uint64_t>, store::kDriverCalls> called_{};
  Bytes page_;
};

}  // namespace ullage::cuda
