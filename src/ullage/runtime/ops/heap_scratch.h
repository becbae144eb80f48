// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scratch that a kernel takes from the heap, past torch's allocator: the pool does not see it come, and it can be
// larger than what may come between two looks. It is charged before the op runs, and given back when it ended.

#include "ullage/runtime/ops/op_call.h"

#include "ullage/base/bytes.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace ullage::runtime {

// Bytes of it, at most. Known: the gradient of a convolution's input where torch computes it by matrix products
// (Slow2d: a single picture, kernels of one pixel on one thread, float64): for each thread one picture with a copy of
// each pixel for each place of the kernel, by operator new (ATen/native/ConvolutionMM2d.cpp). At 1024 x 1024 pixels and
// 16 channels that is 64 MiB a thread.
Bytes heap_scratch(const OpCall& call);

// Where `call` is a matrix product: the bytes of its inputs; else zero. MKL copies parts of them into buffers that it
// keeps for later products, 5 MiB a thread at most (measured with 1, 2 and 8 threads): a product takes more of them
// only if it is larger than those before.
Bytes product_inputs(const OpCall& call);
constexpr Bytes kProductBuffers = 6_MiB;  // of a thread

class HeapScratch final : public OpListener {
 public:
  struct Scratch {
    Bytes bytes;
    bool every_time;  // each run of the op takes it; else this run alone, since it is larger than those before
    bool operator==(const Scratch&) const = default;
  };
  // `charge` may throw: then the op does not run. Both are called with the same scratch.
  HeapScratch(std::function<void(Scratch, const std::string& op)> charge, std::function<void(Scratch)> discharge)
      : charge_(std::move(charge)), discharge_(std::move(discharge)) {}

  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

 private:
  const std::function<void(Scratch, const std::string&)> charge_;
  const std::function<void(Scratch)> discharge_;
  std::atomic<std::uint64_t> largest_product_{0};  // bytes of its inputs
};

}  // namespace ullage::runtime
