// SPDX-License-Identifier: Apache-2.0
#pragma once

// Steps so small that all their schedules can be tried (cheapest_schedule.h): storages of a few bytes, ops of whole
// seconds.

#include "ullage/plan/model/step.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ullage::plan::test {

// Builds a step op by op. A storage is freed in the gap after its last use unless it is kept. By default every storage
// can be moved and every op can be recomputed.
class SmallStep final {
 public:
  // Adds a storage that lives from step to step.
  ValueIndex carried(Bytes bytes);
  // Adds a storage that the step before left: this step frees it after its last use, or after its op `frees_after`.
  ValueIndex found(Bytes bytes, OpIndex frees_after = {});
  // Leaves the storage of `made` to the next step, where it is that of `found`.
  void leave(ValueIndex made, ValueIndex found);
  // Adds an op that makes one new storage of `bytes`, and needs `scratch` beside it while it runs.
  ValueIndex op(std::vector<ValueIndex> reads, Bytes bytes, double seconds, Bytes scratch = {});
  ValueIndex in_place(ValueIndex target, std::vector<ValueIndex> others, double seconds);
  // Adds an op with two results of `bytes` each.
  std::vector<ValueIndex> op_of_two(std::vector<ValueIndex> reads, Bytes bytes, double seconds);
  void read_only(std::vector<ValueIndex> reads, double seconds) { add(std::move(reads), seconds, {}); }

  Step& step() { return step_; }
  Step finish();  // adds gaps and levels

 private:
  StepOp& add(std::vector<ValueIndex> reads, double seconds, Bytes scratch);
  ValueIndex make(StepOp& op, Bytes bytes);
  Step step_;
  std::map<StorageIndex, GapIndex> freed_;  // the earliest gap for a storage that may be unused
};

// Makes a random step of `ops` ops and at most 16 values. `with_state`: a storage lives from step to step besides the
// first one. `with_left`: the step leaves a storage to the next one, which frees it.
Step random_small_step(std::uint64_t seed, std::size_t ops, bool with_state, bool with_left = false);

// Returns the peak of plain execution.
Bytes plain_peak_of(const Step& step);

// Makes a chain of `n` layers, each of `bytes` and a second, forward and backward. The first layer's input is one byte
// that lives from step to step. The backward op of a layer reads the layer's input and its result, and makes nothing.
Step chain_step(std::size_t n, Bytes bytes);

}  // namespace ullage::plan::test
