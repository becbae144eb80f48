// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/lever_uses.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace ullage::plan {
namespace {

using What = Action::What;

class Uses final {
 public:
  Uses(const Step& step, const Schedule& schedule, const Rates& rates)
      : step_(step), schedule_(schedule), rates_(rates), copies_(step.values.size()) {}

  // Goes through two steps and returns the uses of the second, because only that one begins with the copies that a step
  // before it left.
  std::vector<LeverUse> tell() {
    Table<StorageIndex, bool> away(step_.storages.size());
    for (const ValueIndex value : schedule_.away) away[storage_of(value)] = true;
    for (const ValueIndex v : copies_.ids()) {
      const StorageIndex was = step_.in_last_step(storage_of(v));
      if (step_.values[v].maker == kNone && was != kNone && away[was]) copies_[v] = {.there = true, .out = true};
    }
    go();
    begin_again();
    go();
    std::stable_sort(uses_.begin(), uses_.end(),
                     [](const LeverUse& a, const LeverUse& b) { return a.bytes > b.bytes; });
    return std::move(uses_);
  }

 private:
  struct Copy {  // of a value, in the tier
    bool there = false;
    bool out = false;      // the bytes are in the tier alone
    bool writing = false;  // by WriteAhead
    bool coming = false;   // by ReadAhead
  };
  StorageIndex storage_of(ValueIndex value) const { return step_.values[value].storage; }
  Bytes bytes_of(ValueIndex value) const { return step_.storages[storage_of(value)].bytes; }

  // Begins the next step. Only the copies of values that live from step to step remain.
  void begin_again() {
    Table<StorageIndex, Copy> last(step_.storages.size());
    for (const ValueIndex v : copies_.ids()) {
      if (step_.values[v].overwritten_by == kNone) last[storage_of(v)] = copies_[v];
    }
    for (const ValueIndex v : copies_.ids()) {
      const StorageIndex was = step_.in_last_step(storage_of(v));
      copies_[v] = step_.values[v].maker == kNone && was != kNone ? last[was] : Copy{};
    }
    uses_.clear(), of_op_.clear(), of_batch_norm_.clear(), of_storage_.clear(), brought_.clear();
  }

  void go() {
    auto action = schedule_.actions.begin();
    const auto act_until = [&](OpIndex op, bool after) {
      for (; action != schedule_.actions.end() && action->at == op && action->after == after; ++action) {
        act(*action);
      }
    };
    for (const OpIndex op : step_.ops.ids()) {
      act_until(op, false);
      for (const ValueIndex made : step_.ops[op].makes) copies_[made] = {};
      act_until(op, true);
    }
  }

  void act(const Action& action) {
    switch (action.what) {
      case What::Recompute:
      case What::BatchNorm:
        recompute(action);
        break;
      case What::Spill:
      case What::WriteAhead:
        write(action.value, action.what == What::WriteAhead);
        break;
      case What::Restore:
      case What::ReadAhead:
        read(action.value, action.what == What::ReadAhead);
        break;
      case What::Hold:
        uses_.push_back(
            {.lever = word_of(&Levers::hold), .site = name_of(action.value), .bytes = bytes_of(action.value)});
        break;
      case What::Drop:
        copies_[action.value] = {};
        break;
    }
  }

  void recompute(const Action& action) {
    const bool batch_norm = action.what == What::BatchNorm;
    const StepOp& op = step_.ops[action.op];
    const auto [at, first] = (batch_norm ? of_batch_norm_ : of_op_).emplace(action.op, uses_.size());
    const char* const lever = word_of(batch_norm ? &Levers::batch_norm : &Levers::recompute);
    if (first) uses_.push_back({.lever = lever, .site = site_of(op)});
    LeverUse& use = uses_[at->second];
    use.seconds.count += (batch_norm ? op.batch_norm : op.recompute)->took.count;
    for (const ValueIndex kept : action.keeps) {
      copies_[kept] = {};
      use.seconds.count += rates_.each.count;
      if (brought_.insert(kept).second) use.bytes += bytes_of(kept);
    }
  }

  void write(ValueIndex value, bool ahead) {
    Copy& copy = copies_[value];
    if (copy.out) return;
    LeverUse& use = use_of(storage_of(value));
    if (!copy.there && !copy.writing) use.seconds.count += static_cast<double>(bytes_of(value).count) / rates_.write;
    copy.writing = ahead;
    if (ahead) return;
    copy.there = copy.out = true;
    use.seconds.count += rates_.each.count;
  }

  void read(ValueIndex value, bool ahead) {
    Copy& copy = copies_[value];
    const bool coming = copy.coming;
    copy.coming = ahead;
    copy.out = false;
    if (coming) return;
    LeverUse& use = use_of(storage_of(value));
    use.seconds.count += rates_.each.count + static_cast<double>(bytes_of(value).count) / rates_.read;
  }

  LeverUse& use_of(StorageIndex storage) {
    const auto [at, first] = of_storage_.emplace(storage, uses_.size());
    const StepStorage& it = step_.storages[storage];
    const char* const lever = word_of(it.from_before && it.outlives ? &Levers::state : &Levers::spill);
    if (first) uses_.push_back({.lever = lever, .site = it.name, .bytes = it.bytes});
    return uses_[at->second];
  }

  std::string name_of(ValueIndex value) const { return step_.storages[storage_of(value)].name; }
  std::string site_of(const StepOp& op) const {
    if (op.makes.empty()) return op.name;
    const std::string name = name_of(op.makes.front());
    return name.starts_with(op.name) ? name : op.name + " " + name;
  }

  const Step& step_;
  const Schedule& schedule_;
  const Rates& rates_;
  Table<ValueIndex, Copy> copies_;
  std::vector<LeverUse> uses_;
  std::map<OpIndex, std::size_t> of_op_, of_batch_norm_;  // index into `uses_`
  std::map<StorageIndex, std::size_t> of_storage_;        // index into `uses_`
  std::set<ValueIndex> brought_;                          // values that recomputes brought back
};

}  // namespace

std::vector<LeverUse> lever_uses(const Step& step, const Schedule& schedule, const Rates& rates) {
  return Uses(step, schedule, rates).tell();
}

}  // namespace ullage::plan
