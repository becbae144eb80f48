// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the ops that compute in bf16, for `ullage run --allow bf16`: those that read a bf16 tensor. Views and casts
// compute nothing and are left out.

#include "ullage/runtime/ops/op_call.h"

#include <atomic>
#include <cstdint>

namespace ullage::runtime {

class HalfOps final : public OpListener {
 public:
  // `count` must outlive this.
  explicit HalfOps(std::atomic<std::uint64_t>& count) : count_(count) {}

  void begin(OpCall& call) override;
  void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}

 private:
  std::atomic<std::uint64_t>& count_;
};

}  // namespace ullage::runtime
