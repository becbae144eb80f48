// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a step op by op, as an extract of a recording would be: values, levels, peak and overhead follow from what is
// told.

#include "ullage/plan/model/step.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan::test {

// Storages, each once. What an op writes in place it also reads.
struct OpSpec {
  std::string name = "aten::op";
  std::vector<StorageIndex> reads{};
  std::vector<StorageIndex> writes{};  // in place; those that are not among `reads` come behind them
  std::vector<Bytes> makes{};
  std::vector<Bytes> hides{};
  Bytes scratch{};
  Seconds took{1e-3};
  bool recompute = true;
  // A batch norm: recomputed from reads[0], reads[1], reads[2] and its own second and third result, in this time.
  std::optional<Seconds> batch_norm{};
  std::vector<std::uint32_t> unread{};  // indices into the reads
  trace::Phase phase = trace::Phase::Forward;
};

class StepWriter final {
 public:
  StepWriter() { step_.gaps.emplace_back(); }

  // Before the first op: alive when the step begins.
  StorageIndex from_before(Bytes bytes, const std::string& name = "before");
  // Between two ops.
  StorageIndex born(Bytes bytes, const std::string& name = "born");
  void free(StorageIndex storage);
  // The storages that are new, in the order of `makes`; `hides` come behind them.
  std::vector<StorageIndex> op(const OpSpec& spec);
  StorageIndex op1(const OpSpec& spec) { return op(spec).at(0); }  // the first of them

  ValueIndex value(StorageIndex storage) const { return newest_.at(storage).value(); }  // the newest it has now
  OpIndex last() const { return step_.ops.next_id().previous(); }
  bool alive(StorageIndex storage) const { return alive_.at(storage); }
  Bytes bytes(StorageIndex storage) const { return step_.storages.at(storage).bytes; }
  std::size_t ops() const { return step_.ops.size(); }

  // What is alive now outlives it. `others`: bytes that stand beside all that was told; `saved`: Step::saved.
  Step step(Bytes others = {}, Bytes saved = {}) const;

 private:
  StorageIndex storage(Bytes bytes, const std::string& name, trace::Category category);
  ValueIndex add_value(StorageIndex storage, OpIndex maker);

  Step step_;
  Table<StorageIndex, bool> alive_;
  Table<StorageIndex, std::optional<ValueIndex>> newest_;  // none: hidden, and nobody looked at it yet
};

}  // namespace ullage::plan::test
