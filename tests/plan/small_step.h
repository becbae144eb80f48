// SPDX-License-Identifier: Apache-2.0
#pragma once

// Steps so small that all their schedules can be tried: a few bytes for each storage, whole seconds.

#include "ullage/plan/model/step.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ullage::plan::test {

// Builds a step op by op. Storages are freed in the gap behind their last use unless they are kept; all can be moved
// and all ops run again unless told otherwise.
class SmallStep final {
 public:
  // Alive from step to step.
  ValueIndex carried(Bytes bytes);
  // One new storage, of so many bytes; `scratch` beside it.
  ValueIndex op(std::vector<ValueIndex> reads, Bytes bytes, double seconds, Bytes scratch = {});
  ValueIndex in_place(ValueIndex target, std::vector<ValueIndex> others, double seconds);
  // Two results.
  std::vector<ValueIndex> op_of_two(std::vector<ValueIndex> reads, Bytes bytes, double seconds);
  void read_only(std::vector<ValueIndex> reads, double seconds) { add(std::move(reads), seconds, {}); }

  Step& step() { return step_; }
  Step finish();  // gaps, levels

 private:
  StepOp& add(std::vector<ValueIndex> reads, double seconds, Bytes scratch);
  ValueIndex make(StepOp& op, Bytes bytes);
  Step step_;
};

// A random one: `ops` ops, at most 16 values.
Step random_small_step(std::uint64_t seed, std::size_t ops, bool with_state);

// Most bytes present at once in plain execution.
Bytes plain_peak_of(const Step& step);

// A chain of `n` layers, each of `bytes` and a second, forward and backward: layer i's backward reads what it received,
// what it made, and a gradient of a byte.
Step chain_step(std::size_t n, Bytes bytes);

}  // namespace ullage::plan::test
