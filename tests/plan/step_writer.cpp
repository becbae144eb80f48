// SPDX-License-Identifier: Apache-2.0
#include "plan/step_writer.h"

#include "ullage/plan/model/site_key.h"
#include "ullage/plan/model/step_builder.h"
#include "ullage/sim/pool_model.h"
#include "ullage/store/store.h"

#include <algorithm>
#include <array>
#include <map>

namespace ullage::plan::test {
namespace {

// Runs the step without a plan. Gives the level of bytes after each event, and the bytes that a pool would hold.
class PlainRun final {
 public:
  explicit PlainRun(Step& step) : step_(step) {}

  void begin(Bytes others) {
    step_.level = others;
    add(others);
    for (const StorageIndex i : step_.storages.ids()) {
      if (!step_.storages[i].from_before) continue;
      step_.level += step_.storages[i].bytes;
      born(i);
    }
  }
  void gap(GapIndex i) {
    for (const GapEvent& event : step_.gaps[i]) event.born ? born(event.storage) : dies(event.storage);
  }
  void op(const StepOp& op) {
    const Bytes before = level_;
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) {
      born(step_.values[op.makes[i]].storage);
    }
    for (const StorageIndex hidden : op.hides) born(hidden);
    const Bytes scratch = before + op.rise - level_;
    if (scratch == Bytes{}) return;
    const Address at = pool_.allocate(scratch);
    note(level_ + scratch);
    pool_.free(at);
  }

 private:
  void note(Bytes level) {
    step_.peak = std::max(step_.peak, level);
    step_.overhead = std::max(step_.overhead, saturating_sub(pool_.resident_now(), level));
  }
  std::optional<Address> add(Bytes bytes) {
    level_ += bytes;
    std::optional<Address> at;
    if (bytes > Bytes{}) at = pool_.allocate(bytes);
    note(level_);
    return at;
  }
  void born(StorageIndex storage) {
    if (const auto at = add(step_.storages[storage].bytes)) at_[storage] = *at;
  }
  void dies(StorageIndex storage) {
    level_ -= step_.storages[storage].bytes;
    if (const auto at = at_.extract(storage)) pool_.free(at.mapped());
    note(level_);
  }

  Step& step_;
  sim::PoolModel pool_;
  Bytes level_;
  std::map<StorageIndex, Address> at_;
};

}  // namespace

StorageIndex StepWriter::storage(Bytes bytes, const std::string& name, trace::Category category) {
  const StorageIndex index = step_.storages.next_id();
  StepStorage storage;
  storage.in_take = StorageId{index.value};
  storage.bytes = bytes;
  storage.name = name;
  storage.category = category;
  storage.movable = bytes >= store::Store::kLeastRange;
  step_.storages.push_back(storage);
  alive_.push_back(true);
  newest_.push_back(std::nullopt);
  return index;
}

ValueIndex StepWriter::add_value(StorageIndex storage, OpIndex maker) {
  const ValueIndex index = step_.values.next_id();
  auto& newest = newest_.at(storage);
  if (newest) step_.values[*newest].overwritten_by = maker;
  newest = index;
  step_.values.push_back({storage, maker, kNone});
  return index;
}

StorageIndex StepWriter::from_before(Bytes bytes, const std::string& name) {
  ULLAGE_CHECK(step_.ops.empty() && step_.gaps.front().empty(), "the step has begun");
  const StorageIndex index = storage(bytes, name, trace::Category::Parameters);
  step_.storages[index].from_before = true;
  add_value(index, kNone);
  return index;
}

StorageIndex StepWriter::born(Bytes bytes, const std::string& name) {
  const StorageIndex index = storage(bytes, name, trace::Category::Inputs);
  add_value(index, kNone);
  step_.gaps.back().push_back({index, true});
  return index;
}

void StepWriter::free(StorageIndex storage) {
  ULLAGE_CHECK(alive_.at(storage), "a storage is freed twice");
  alive_[storage] = false;
  step_.gaps.back().push_back({storage, false});
}

std::vector<StorageIndex> StepWriter::op(const OpSpec& spec) {
  const OpIndex index = step_.ops.next_id();
  StepOp op;
  op.name = spec.name;
  op.in_take = OpId{index.value};
  op.phase = spec.phase;
  op.took = spec.took;
  op.unread = spec.unread;
  op.overwrites = spec.writes.size();
  SiteKey key(spec.name);
  std::vector<StorageIndex> reads = spec.reads;
  for (const StorageIndex written : spec.writes) {
    if (std::find(reads.begin(), reads.end(), written) == reads.end()) reads.push_back(written);
  }
  Recompute again;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    ULLAGE_CHECK(alive(reads[i]), "an op receives a dead storage");
    if (!newest_[reads[i]]) add_value(reads[i], kNone);  // a hidden storage is read for the first time
    op.reads.push_back(value(reads[i]));
    key.add(6, std::array{static_cast<std::int64_t>(bytes(reads[i]).count)});
    if (std::find(op.unread.begin(), op.unread.end(), i) == op.unread.end()) again.reads.push_back(op.reads.back());
  }
  op.key = key.value();
  for (const StorageIndex written : spec.writes) op.makes.push_back(add_value(written, index));
  std::vector<StorageIndex> made;
  op.rise = spec.scratch;
  for (const Bytes bytes : spec.makes) {
    made.push_back(storage(bytes, spec.name + " " + std::to_string(index.value), trace::Category::Activations));
    op.makes.push_back(add_value(made.back(), index));
    op.rise += bytes;
  }
  for (const Bytes bytes : spec.hides) {
    made.push_back(storage(bytes, spec.name + " (hidden)", trace::Category::Workspace));
    step_.storages.back().movable = false;
    op.hides.push_back(made.back());
    op.rise += bytes;
  }
  again.took = op.took, again.rise = op.rise;
  if (spec.recompute) op.recompute = again;
  if (spec.batch_norm) {
    op.batch_norm = Recompute{{op.reads.at(0), op.reads.at(1), op.reads.at(2), op.makes.at(1), op.makes.at(2)},
                              *spec.batch_norm,
                              spec.makes.at(0)};
  }
  step_.ops.push_back(op);
  step_.gaps.emplace_back();
  return made;
}

Step StepWriter::step(Bytes others, Bytes saved) const {
  Step step = step_;
  for (const StorageIndex i : step.storages.ids()) step.storages[i].outlives = alive_[i];
  link_steps(step, {});
  PlainRun plain(step);
  plain.begin(others);
  for (const OpIndex i : step.ops.ids()) {
    plain.gap(gap_before(i));
    plain.op(step.ops[i]);
    step.in_ops.count += step.ops[i].took.count;
  }
  plain.gap(gap_before(step.ops.next_id()));
  step.saved = saved;
  step.seconds = Seconds{step.in_ops.count * 1.125};
  return step;
}

}  // namespace ullage::plan::test
