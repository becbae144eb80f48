// SPDX-License-Identifier: Apache-2.0
#include "plan/small_step.h"

#include "ullage/plan/bound/spans.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ullage::plan::test {

ValueIndex SmallStep::carried(Bytes bytes) {
  StepStorage storage;
  storage.bytes = bytes;
  storage.from_before = storage.outlives = storage.movable = true;
  return step_.values.push_back({step_.storages.push_back(storage), kNone, kNone});
}

ValueIndex SmallStep::found(Bytes bytes, OpIndex frees_after) {
  const ValueIndex value = carried(bytes);
  step_.storages[step_.values[value].storage].outlives = false;
  freed_[step_.values[value].storage] = gap_after(frees_after);
  return value;
}

void SmallStep::leave(ValueIndex made, ValueIndex found) {
  StepStorage& left = step_.storages[step_.values[made].storage];
  StepStorage& later = step_.storages[step_.values[found].storage];
  left.outlives = true;
  if (!left.movable || !later.movable) return;  // link_steps() links only storages that a plan can evict
  left.becomes = step_.values[found].storage;
  later.was = step_.values[made].storage;
}

StepOp& SmallStep::add(std::vector<ValueIndex> reads, double seconds, Bytes scratch) {
  StepOp op;
  op.name = "op " + std::to_string(step_.ops.size());
  op.took = {seconds};
  op.rise = scratch;
  op.reads = std::move(reads);
  op.recompute = Recompute{op.reads, op.took, scratch};
  step_.ops.push_back(std::move(op));
  return step_.ops.back();
}

ValueIndex SmallStep::make(StepOp& op, Bytes bytes) {
  StepStorage storage;
  storage.bytes = bytes;
  storage.movable = true;
  const OpIndex at = step_.ops.next_id().previous();
  op.makes.push_back(step_.values.push_back({step_.storages.push_back(storage), at, kNone}));
  op.rise += bytes;
  op.recompute->rise += bytes;
  return op.makes.back();
}

ValueIndex SmallStep::op(std::vector<ValueIndex> reads, Bytes bytes, double seconds, Bytes scratch) {
  return make(add(std::move(reads), seconds, scratch), bytes);
}

std::vector<ValueIndex> SmallStep::op_of_two(std::vector<ValueIndex> reads, Bytes bytes, double seconds) {
  StepOp& op = add(std::move(reads), seconds, {});
  const ValueIndex one = make(op, bytes);
  return {one, make(op, bytes)};
}

ValueIndex SmallStep::in_place(ValueIndex target, std::vector<ValueIndex> others, double seconds) {
  others.insert(others.begin(), target);
  StepOp& op = add(std::move(others), seconds, {});
  const OpIndex at = step_.ops.next_id().previous();
  if (step_.values[target].maker == kNone) op.recompute.reset();
  step_.values[target].overwritten_by = at;
  op.makes.push_back(step_.values.push_back({step_.values[target].storage, at, kNone}));
  op.overwrites = 1;
  return op.makes.back();
}

Step SmallStep::finish() {
  step_.gaps.assign(step_.ops.size() + 1, {});
  Table<StorageIndex, GapIndex> last(step_.storages.size());
  for (const auto& [storage, gap] : freed_) last[storage] = gap;
  for (const OpIndex op : step_.ops.ids()) {
    for (const std::vector<ValueIndex>& values : {step_.ops[op].reads, step_.ops[op].makes}) {
      for (const ValueIndex v : values) {
        GapIndex& gap = last[step_.values[v].storage];
        gap = std::max(gap, gap_after(op));
      }
    }
    step_.in_ops.count += step_.ops[op].took.count;
  }
  for (const StorageIndex s : step_.storages.ids()) {
    if (step_.storages[s].from_before) step_.level += step_.storages[s].bytes;
    if (!step_.storages[s].outlives) step_.gaps[last[s]].push_back({s, false});
  }
  step_.seconds = step_.in_ops;
  step_.peak = plain_peak_of(step_);
  return step_;
}

Bytes plain_peak_of(const Step& step) {
  const Spans spans = spans_of(step);
  Bytes peak;
  for (const OpIndex op : step.ops.ids()) {
    Bytes level = step.ops[op].rise;
    for (const StorageIndex s : step.storages.ids()) {
      if (spans.storages[s].holds(op)) level += step.storages[s].bytes;
    }
    peak = std::max(peak, level);
  }
  return peak;
}

Step chain_step(std::size_t n, Bytes bytes) {
  SmallStep small;
  std::vector<ValueIndex> made{small.carried(1_B)};
  for (std::size_t i = 0; i < n; ++i) made.push_back(small.op({made.back()}, bytes, 1));
  for (std::size_t i = n; i > 0; --i) small.read_only({made[i - 1], made[i]}, 1);
  return small.finish();
}

Step random_small_step(std::uint64_t seed, std::size_t ops, bool with_state, bool with_left) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  SmallStep small;
  std::vector<ValueIndex> readable{small.carried(Bytes{1 + pick(3)})};
  if (with_state) readable.push_back(small.carried(Bytes{2 + pick(6)}));
  ValueIndex found;
  if (with_left) {
    found = small.found(Bytes{2 + pick(6)}, OpIndex{1 + pick(ops / 2)});
    if (pick(2) == 0) readable.push_back(found);
  }
  const auto some = [&] {
    std::vector<ValueIndex> reads;
    for (std::size_t i = 0; i < 1 + pick(2); ++i) {
      const ValueIndex v = pick(3) > 0 ? readable[readable.size() - 1 - pick(std::min<std::size_t>(3, readable.size()))]
                                       : readable[pick(readable.size())];
      if (std::find(reads.begin(), reads.end(), v) == reads.end()) reads.push_back(v);
    }
    return reads;
  };
  for (std::size_t i = 0; i < ops; ++i) {
    const double seconds = double(1 + pick(6));
    const bool room = small.step().values.size() < 14;
    std::vector<ValueIndex> reads = some();
    const std::uint64_t kind = pick(10);
    if (!room || kind == 0) {
      small.read_only(reads, seconds);
    } else if (kind <= 2) {
      const ValueIndex target = reads.front();
      reads.erase(reads.begin());
      const ValueIndex made = small.in_place(target, reads, seconds);
      std::replace(readable.begin(), readable.end(), target, made);
    } else if (kind == 3) {
      for (const ValueIndex v : small.op_of_two(reads, Bytes{1 + pick(5)}, seconds)) readable.push_back(v);
    } else {
      readable.push_back(small.op(reads, Bytes{1 + pick(8)}, seconds, Bytes{pick(3)}));
    }
    StepOp& op = small.step().ops.back();
    if (pick(5) == 0) op.recompute.reset();
    if (op.overwrites == 0 && op.makes.size() == 1 && pick(5) == 0) {
      op.batch_norm = Recompute{op.reads, {seconds / 4}, op.rise};
    }
    if (op.overwrites == 0 && op.reads.size() > 1 && pick(6) == 0) {
      op.unread.push_back(1);
      if (op.recompute) op.recompute->reads.pop_back();
      if (op.batch_norm) op.batch_norm->reads.pop_back();
    }
  }
  for (StepStorage& storage : small.step().storages) storage.movable = pick(6) > 0;
  if (with_left) {
    const ValueIndex left = small.op(some(), small.step().storages[small.step().values[found].storage].bytes, 2);
    small.leave(left, found);
    small.read_only(some(), 1);
  }
  return small.finish();
}

}  // namespace ullage::plan::test
