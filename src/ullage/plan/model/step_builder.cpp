// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/step_builder.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::plan {
namespace {

using How = trace::TensorUse::How;
constexpr StorageIndex kNotListed{UINT64_MAX};

// The op that runs now.
struct Open {
  std::vector<StorageId> born;                                     // during the op, and still alive
  std::vector<StorageIndex> before;                                // born before the op, freed during it
  std::uint64_t level = 0, own_level = 0, rise = 0, own_rise = 0;  // relative to the op's begin
  std::int64_t outside = 0;                                        // charged bytes outside the pool
};

class Builder final {
 public:
  Builder(const trace::TakeIndex& index, const trace::TakeMeaning& meaning, const StepRange& range, const StandsOn& on)
      : index_(index),
        take_(index.take),
        meaning_(meaning),
        range_(range),
        on_(on),
        listed_(take_.trace.storages.size(), kNotListed),
        lives_(listed_.size()),
        elsewhere_(listed_.size()),
        written_elsewhere_(listed_.size()) {}

  Result<BuiltStep> run() {
    look_elsewhere();
    begin();
    made_.step.gaps.resize(range_.ops.size() + 1);
    for (std::uint64_t e = range_.begin.value; e < range_.end.value && fault_.empty(); ++e) {
      at_ = EventId{e};
      follow_charges();
      follow(take_.trace.events[e]);
    }
    if (fault_.empty() && at_op_ != range_.ops.next_id()) fail("the last op has not ended");
    if (!fault_.empty()) return Error{Error::Kind::BadFile, "the recording contradicts itself: " + fault_, ""};
    for (StepStorage& one : made_.step.storages) one.outlives = lives_[one.in_take.value];
    for (const StepStorage& one : made_.step.storages)
      made_.written_elsewhere.push_back(written_elsewhere_[one.in_take.value]);
    link_steps(made_.step, births_);
    return std::move(made_);
  }

 private:
  const trace::Storage& storage(StorageId id) const { return take_.trace.storages[id.value]; }
  Bytes held(StorageId id) const {
    const Bytes asked = storage(id).bytes;
    return asked < on_.least_in_pool ? Bytes{} : asked;
  }
  bool known(StorageId id) const { return id.value < listed_.size(); }
  bool of_another_thread(StorageId id) const {
    const OpId op = storage(id).op;
    return op != trace::kNoOp && index_.detail(op).thread != range_.thread;
  }
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = "event " + std::to_string(at_.value) + ": " + what;
  }

  void look_elsewhere() {
    for (const trace::OpDetail& one : take_.details) {
      if (one.thread == range_.thread || one.begin >= range_.end || one.end < range_.begin) continue;
      for (const trace::TensorUse& use : one.uses) {
        elsewhere_[use.storage.value] = true;
        if (use.how == How::Written) written_elsewhere_[use.storage.value] = true;
      }
    }
  }

  // Finds the storages that live when the step begins. Lists those that the step uses or frees or that are large enough
  // to be moved.
  void begin() {
    std::vector<bool> used(listed_.size());
    for (const OpId op : range_.ops) {
      for (const trace::TensorUse& use : index_.detail(op).uses) used[use.storage.value] = true;
    }
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      const trace::Storage& one = take_.trace.storages[i];
      lives_[i] = (one.from_before || one.born < range_.begin) && one.died >= range_.begin;
      if (!lives_[i]) continue;
      add(held(StorageId{i}));
      const bool dies = one.died < range_.end;
      if (!used[i] && !dies && one.bytes < on_.least_movable) continue;
      new_value(list(StorageId{i}, true), kNone);
    }
    made_.step.level = Bytes{level_};
  }

  void add(Bytes bytes) {
    if (bytes > kMostAtOnce || level_ > kMostAtOnce.count - bytes.count) return fail("more than 16 TiB live at once");
    level_ += bytes.count;
  }

  std::string name_of(StorageId id) const {
    if (index_.leaf[id.value]) {
      const std::string& name = take_.roles[index_.role[id.value]].name;
      if (!name.empty()) return name;
    }
    return std::string(trace::owner_name(storage(id), meaning_.meanings));
  }

  StorageIndex list(StorageId id, bool from_before) {
    StepStorage one;
    one.in_take = id;
    one.bytes = held(id);
    one.name = name_of(id);
    one.category = meaning_.categories[id.value];
    one.from_before = from_before;
    one.movable = one.bytes >= on_.least_movable && !elsewhere_[id.value] && (from_before || !of_another_thread(id));
    newest_.push_back({});
    const OpId maker = storage(id).op;
    births_.push_back({!storage(id).from_before, maker == trace::kNoOp ? 0 : key_of(index_, maker)});
    return listed_[id.value] = made_.step.storages.push_back(std::move(one));
  }
  ValueIndex new_value(StorageIndex of, OpIndex maker) {
    return newest_[of] = made_.step.values.push_back({of, maker, kNone});
  }

  void follow(const trace::Event& event) {
    if (const auto* begun = std::get_if<trace::event::OpBegin>(&event.what)) {
      if (range_.ops.has(at_op_) && begun->op == range_.ops[at_op_]) begin_op(begun->op);
    } else if (const auto* over = std::get_if<trace::event::OpEnd>(&event.what)) {
      if (open_ && over->op == range_.ops[at_op_]) end_op(over->op);
    } else if (const auto* born = std::get_if<trace::event::Allocation>(&event.what)) {
      if (!known(born->storage) || lives_[born->storage.value]) return fail("a storage is born twice");
      lives_[born->storage.value] = true;
      add(held(born->storage));
      open_ ? born_in_op(born->storage) : born_in_gap(born->storage);
    } else if (const auto* died = std::get_if<trace::event::Free>(&event.what)) {
      if (!known(died->storage) || !lives_[died->storage.value]) return fail("a storage is freed that is not alive");
      lives_[died->storage.value] = false;
      level_ -= std::min(level_, held(died->storage).count);
      open_ ? dies_in_op(died->storage) : dies_in_gap(died->storage);
    }
  }

  // Bytes that an op takes outside the pool while it runs count in `rise`, like those inside. Charges between ops do
  // not: they lower the pool's limit instead.
  void follow_charges() {
    for (; charge_ < take_.charges.size() && take_.charges[charge_].at <= at_; ++charge_) {
      if (!open_ || take_.charges[charge_].at < at_) continue;
      const std::int64_t bytes = take_.charges[charge_].bytes;
      open_->outside = std::max<std::int64_t>(0, open_->outside + bytes);
      note_level();
    }
  }
  void note_level() {
    const auto outside = static_cast<std::uint64_t>(open_->outside);
    open_->rise = std::max(open_->rise, open_->level + outside);
    open_->own_rise = std::max(open_->own_rise, open_->own_level + outside);
  }

  void born_in_gap(StorageId id) {
    const StorageIndex one = list(id, false);
    new_value(one, kNone);
    made_.step.gaps[gap_before(at_op_)].push_back({one, true});
  }
  void dies_in_gap(StorageId id) {
    if (listed_[id.value] == kNotListed) return fail("a storage is freed earlier than its entry says");
    made_.step.gaps[gap_before(at_op_)].push_back({listed_[id.value], false});
  }
  void born_in_op(StorageId id) {
    open_->born.push_back(id);
    const std::uint64_t bytes = held(id).count;
    open_->level += bytes;
    if (!of_another_thread(id)) open_->own_level += bytes;
    note_level();
  }
  void dies_in_op(StorageId id) {
    if (std::erase(open_->born, id) == 0) {
      if (listed_[id.value] == kNotListed) return fail("a storage is freed earlier than its entry says");
      open_->before.push_back(listed_[id.value]);
      return;
    }
    open_->level -= held(id).count;
    if (!of_another_thread(id)) open_->own_level -= held(id).count;
  }

  void begin_op(OpId id) {
    open_.emplace();
    StepOp op;
    op.name = take_.trace.ops[id.value].name;
    op.key = key_of(index_, id);
    op.in_take = id;
    op.phase = meaning_.op_phases[id.value];
    op.took = index_.detail(id).took;
    for (const StorageIndex one : distinct(id, [](How how) { return how != How::Output; })) {
      if (one == kNotListed) return fail("an argument of " + op.name + " does not live");
      op.reads.push_back(newest_[one]);
    }
    made_.step.ops.push_back(std::move(op));
  }

  void end_op(OpId id) {
    const OpIndex here = made_.step.ops.next_id().previous();
    StepOp& op = made_.step.ops.back();
    Table<StorageIndex, bool> written(made_.step.storages.size());
    for (const StorageIndex one : distinct(id, [](How how) { return how == How::Written; })) written[one] = true;
    for (const ValueIndex read : op.reads) {
      const StorageIndex one = made_.step.values[read].storage;
      if (!written[one]) continue;
      made_.step.values[read].overwritten_by = here;
      op.makes.push_back(new_value(one, here));
    }
    op.overwrites = op.makes.size();
    for (const trace::TensorUse& use : index_.detail(id).uses) {
      if (use.how != How::Output || std::erase(open_->born, use.storage) == 0) continue;
      op.makes.push_back(new_value(list(use.storage, false), here));
    }
    hide(op);
    op.rise = Bytes{open_->rise};
    made_.own_rise.push_back(Bytes{open_->own_rise});
    at_op_ = at_op_.next();
    for (const StorageIndex one : open_->before) made_.step.gaps[gap_before(at_op_)].push_back({one, false});
    open_.reset();
  }

  void hide(StepOp& op) {
    bool own = false;
    for (const StorageId id : open_->born) {
      const StorageIndex one = list(id, false);
      made_.step.storages[one].movable = false;
      new_value(one, kNone);
      op.hides.push_back(one);
      own |= !of_another_thread(id);
    }
    made_.hides_own.push_back(own);
  }

  // The distinct storages of the uses that `wanted` picks, in the order of their first such use; kNotListed for a
  // storage that is not alive.
  template <class Wanted>
  std::vector<StorageIndex> distinct(OpId op, const Wanted& wanted) const {
    std::vector<StorageIndex> all;
    for (const trace::TensorUse& use : index_.detail(op).uses) {
      if (!wanted(use.how)) continue;
      const StorageIndex one{lives_[use.storage.value] || open_dies(use.storage) ? listed_[use.storage.value]
                                                                                 : kNotListed};
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    }
    return all;
  }
  // Was it freed during the op that runs? An argument may be.
  bool open_dies(StorageId id) const {
    return open_ && listed_[id.value] != kNotListed &&
           std::ranges::find(open_->before, listed_[id.value]) != open_->before.end();
  }

  const trace::TakeIndex& index_;
  const trace::Take& take_;
  const trace::TakeMeaning& meaning_;
  const StepRange& range_;
  const StandsOn& on_;

  BuiltStep made_;
  std::vector<StorageIndex> listed_;                         // by StorageId
  std::vector<bool> lives_, elsewhere_, written_elsewhere_;  // by StorageId; elsewhere: by ops of other threads
  Table<StorageIndex, ValueIndex> newest_;
  Table<StorageIndex, Birth> births_;
  std::optional<Open> open_;
  OpIndex at_op_;           // the op that runs or comes next
  std::size_t charge_ = 0;  // index of the next charge
  std::uint64_t level_ = 0;
  EventId at_;
  std::string fault_;
};

}  // namespace

void link_steps(Step& step, const Table<StorageIndex, Birth>& births) {
  struct Alike {
    std::vector<StorageIndex> found, left;
  };
  const auto birth = [&](StorageIndex s) { return births.has(s) ? births[s] : Birth{}; };
  // A storage that was there before the recording began and outlives the step keeps its name.
  const auto changes = [&](StorageIndex s) { return !step.storages[s].outlives || birth(s).in_take; };
  const auto pair_up = [&](const auto& alike_by) {
    std::map<decltype(alike_by(StorageIndex{})), Alike> all;
    for (const StorageIndex s : step.storages.ids()) {
      const StepStorage& one = step.storages[s];
      if (one.from_before && changes(s) && one.was == kNone) all[alike_by(s)].found.push_back(s);
      if (one.outlives && (!one.from_before || changes(s)) && one.becomes == kNone) all[alike_by(s)].left.push_back(s);
    }
    const auto age = [&](StorageIndex s) { return std::pair(step.storages[s].in_take, s); };
    for (auto& [key, alike] : all) {
      if (alike.found.size() != alike.left.size()) continue;
      std::ranges::sort(alike.found, {}, age);
      std::ranges::sort(alike.left, {}, age);
      for (std::size_t i = 0; i < alike.found.size(); ++i) {
        step.storages[alike.left[i]].becomes = alike.found[i];
        step.storages[alike.found[i]].was = alike.left[i];
      }
    }
  };
  pair_up([&](StorageIndex s) { return std::pair(step.storages[s].bytes, birth(s).maker); });
  pair_up([&](StorageIndex s) { return step.storages[s].bytes; });
}

Result<BuiltStep> build_step(const trace::TakeIndex& index, const trace::TakeMeaning& meaning, const StepRange& range,
                             const StandsOn& on) {
  return Builder(index, meaning, range, on).run();
}

}  // namespace ullage::plan
