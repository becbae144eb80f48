// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a step op by op, as it would be extracted from a recording. It derives values, levels, peak and overhead.

#include "ullage/plan/model/step.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan::test {

// A list names each storage at most once. An op also reads what it writes in place.
struct OpSpec {
  std::string name = "aten::op";
  std::vector<StorageIndex> reads{};
  std::vector<StorageIndex> writes{};  // in place; those that are not among `reads` are appended to them
  std::vector<Bytes> makes{};
  std::vector<Bytes> hides{};
  Bytes scratch{};
  Seconds took{1e-3};
  bool recompute = true;
  // Set for a batch norm: the time of its recompute from reads[0], reads[1], reads[2] and its second and third result.
  std::optional<Seconds> batch_norm{};
  std::vector<std::uint32_t> unread{};  // indices into the reads
  trace::Phase phase = trace::Phase::Forward;
};

class StepWriter final {
 public:
  StepWriter() { step_.gaps.emplace_back(); }

  // Adds a storage that is alive when the step begins. Call it before the first op.
  StorageIndex from_before(Bytes bytes, const std::string& name = "before");
  // These happen between two ops.
  StorageIndex born(Bytes bytes, const std::string& name = "born");
  void free(StorageIndex storage);
  // Returns the new storages in the order of `makes`, then those of `hides`.
  std::vector<StorageIndex> op(const OpSpec& spec);
  StorageIndex op1(const OpSpec& spec) { return op(spec).at(0); }  // returns the first new storage

  ValueIndex value(StorageIndex storage) const { return newest_.at(storage).value(); }  // its newest value now
  OpIndex last() const { return step_.ops.next_id().previous(); }
  bool alive(StorageIndex storage) const { return alive_.at(storage); }
  Bytes bytes(StorageIndex storage) const { return step_.storages.at(storage).bytes; }
  std::size_t ops() const { return step_.ops.size(); }

  // Returns the step. Storages that are alive now outlive it. `others`: bytes that are resident besides; `saved`:
  // Step::saved.
  Step step(Bytes others = {}, Bytes saved = {}) const;

 private:
  StorageIndex storage(Bytes bytes, const std::string& name, trace::Category category);
  ValueIndex add_value(StorageIndex storage, OpIndex maker);

  Step step_;
  Table<StorageIndex, bool> alive_;
  Table<StorageIndex, std::optional<ValueIndex>> newest_;  // none: hidden, and not read yet
};

}  // namespace ullage::plan::test
