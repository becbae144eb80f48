// SPDX-License-Identifier: Apache-2.0
#pragma once

// Charges the scratch that a kernel takes from the heap, past torch's allocator. The pool does not see such memory, and
// it can be more than the margin allows between two looks of the watch. The charge lasts from before the op to its end.

#include "ullage/runtime/ops/op_call.h"

#include "ullage/base/bytes.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace ullage::runtime {

// Returns the most bytes of such scratch that this op takes; zero if none is known. One case is known: the gradient of
// a convolution's input, if torch computes it by matrix products. Its backend Slow2d does so
// (ATen/native/Convolution.cpp). Examples are float64, a single picture of at most 20480 numbers, and kernels of one
// pixel on one thread. Each thread then takes bytes for one picture by operator new, with a copy of each pixel for each
// place of the kernel (ConvolutionMM2d.cpp). For 1024 x 1024 pixels, 16 channels and a kernel of one pixel that is 64
// MiB a thread.
Bytes heap_scratch(const OpCall& call);

// Returns the bytes of the inputs if `call` is a matrix product, else zero. MKL copies parts of them into buffers that
// it keeps for later products. The buffers take at most 5 MiB a thread (measured with 1, 2 and 8 threads). A product
// makes these buffers grow only if it is larger than those before.
Bytes product_inputs(const OpCall& call);
constexpr Bytes kProductBuffers = 6_MiB;  // per thread

class HeapScratch final : public OpListener {
 public:
  struct Scratch {
    Bytes bytes;
    bool every_time;  // each run of the op takes it; else only this one: a product over twice as large as all before
  };
  // If `charge` throws, the op does not run. `discharge` gets the scratch of the charge that it ends.
  HeapScratch(std::function<void(Scratch, const std::string& op)> charge, std::function<void(Scratch)> discharge)
      : charge_(std::move(charge)), discharge_(std::move(discharge)) {}

  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

 private:
  const std::function<void(Scratch, const std::string&)> charge_;
  const std::function<void(Scratch)> discharge_;
  std::atomic<std::uint64_t> largest_product_{0};  // bytes of the inputs of the largest product that was charged
};

}  // namespace ullage::runtime
