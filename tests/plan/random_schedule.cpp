// SPDX-License-Identifier: Apache-2.0
#include "plan/random_schedule.h"

#include "plan/content.h"

#include <algorithm>
#include <random>
#include <set>

namespace ullage::plan::test {
namespace {

using What = Action::What;
constexpr std::uint64_t kEver = UINT64_MAX;

// Until when each value is available. In the program's storage, it is until that is overwritten or dies (`lives_`). By
// recompute, it is as long as all that the recompute reads is available (`again_`). Times: 2 k is before op k, 2 k + 1
// after it.
class Reach final {
 public:
  explicit Reach(const Step& step)
      : step_(step),
        lives_(step.values.size(), kEver),
        again_(step.values.size(), 0),
        dies_(step.values.size(), false) {
    for (const ValueIndex i : step.values.ids()) {
      if (step.values[i].overwritten_by != kNone) lives_[i] = 2 * step.values[i].overwritten_by.value;
    }
    for (const GapIndex gap : step.gaps.ids()) {
      for (const GapEvent& event : step.gaps[gap]) {
        if (!event.born) end_last(event.storage, gap == GapIndex{0} ? 0 : 2 * gap.value - 1);
      }
    }
    for (const OpIndex k : step.ops.ids()) {
      if (step.ops[k].recompute) look_at(step.ops[k]);
    }
  }

  // True if the value can be recomputed for as long as anything may need it, and its storage does not die right now.
  bool may_drop(ValueIndex value, std::uint64_t now) const {
    const std::uint64_t lives = lives_[value];
    const std::uint64_t wanted = lives == kEver ? 2 * step_.ops.size() - 1 : lives;
    return step_.values[value].maker != kNone && again_[value] >= wanted && !(dies_[value] && now == lives);
  }

 private:
  void end_last(StorageIndex storage, std::uint64_t at) {
    for (const ValueIndex i : step_.values.ids()) {
      if (step_.values[i].storage != storage || lives_[i] != kEver) continue;
      lives_[i] = at;
      dies_[i] = true;
    }
  }
  void look_at(const StepOp& op) {
    std::uint64_t until = kEver;
    for (const ValueIndex value : op.recompute->reads) {
      const OpIndex maker = step_.values[value].maker;
      const bool before = std::any_of(op.makes.begin(), op.makes.begin() + static_cast<std::ptrdiff_t>(op.overwrites),
                                      [&](ValueIndex made) { return storage_of(made) == storage_of(value); });
      const std::uint64_t again = again_[value];
      const bool stays = maker == kNone || !step_.ops[maker].recompute;
      until = std::min(until, before ? again : stays ? lives_[value] : again);
    }
    for (const ValueIndex value : op.makes) again_[value] = until;
  }
  StorageIndex storage_of(ValueIndex value) const { return step_.values[value].storage; }

  const Step& step_;
  Table<ValueIndex, std::uint64_t> lives_, again_;
  Table<ValueIndex, bool> dies_;  // its life ends with its storage, not because it is overwritten
};

class Author final {
 public:
  Author(const Step& step, std::uint64_t seed, const Wild& wild)
      : step_(step), wild_(wild), random_(seed), reach_(step), content_(step) {}

  std::optional<Schedule> write() {
    for (const StorageIndex i : step_.storages.ids()) {
      const StepStorage& storage = step_.storages[i];
      const StorageIndex next = step_.in_next_step(i);
      if (next == kNone || !storage.movable || !step_.storages[next].movable || !once_in(wild_.away_in)) continue;
      for (const ValueIndex v : step_.values.ids()) {
        if (step_.values[v].storage != i) continue;
        schedule_.away.push_back(v);
        break;
      }
    }
    content_.begin_step(schedule_.away);
    for (const OpIndex i : step_.ops.ids()) {
      content_.gap(gap_before(i));
      before(i);
      if (!good_) return std::nullopt;
      content_.run(i);
      after(i);
      if (!good_) return std::nullopt;
    }
    content_.gap(gap_before(step_.ops.next_id()));
    content_.end_step();
    if (!content_.fine()) return std::nullopt;
    return schedule_;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool once_in(std::uint64_t n) { return n > 0 && below(n) == 0; }

  void act(Action action) {
    action.at = at_, action.after = after_;
    content_.act(action);
    schedule_.actions.push_back(std::move(action));
    good_ = good_ && content_.fine();
  }
  void act(What what, ValueIndex value) { act(Action{.what = what, .value = value}); }

  void before(OpIndex op) {
    at_ = op, after_ = false;
    wander();
    const StepOp& it = step_.ops[op];
    for (int round = 0; round < 8 && good_; ++round) {
      for (const ValueIndex value : it.reads) have(value, 0);
    }
    for (const ValueIndex value : it.reads) good_ = good_ && content_.there(value);
    // Writes at most one storage ahead while the op runs.
    for (const auto& there : content_.all_there()) {
      if (!movable(there.first) || written_by(it, there.first) || !once_in(wild_.spill_in * 4)) continue;
      act(What::WriteAhead, there.first);
      writing_.push_back(there.first);
      break;
    }
  }
  void after(OpIndex op) {
    at_ = op, after_ = true;
    for (const ValueIndex value : writing_) act(What::Spill, value);
    writing_.clear();
    have_what_dies(gap_after(op));
    if (op.next() == step_.ops.next_id()) return tidy_up();  // no later action could drop a hold, so none is made
    for (const GapEvent& event : step_.gaps[gap_after(op)]) {
      for (const auto& there : content_.all_there()) {
        if (event.born || step_.values[there.first].storage != event.storage) continue;
        if (!there.second && !content_.held(there.first) && once_in(wild_.hold_in)) act(What::Hold, there.first);
      }
    }
    wander();
  }

  bool movable(ValueIndex value) const { return step_.storages[step_.values[value].storage].movable; }
  bool written_by(const StepOp& op, ValueIndex value) const {
    const auto end = op.makes.begin() + static_cast<std::ptrdiff_t>(op.overwrites);
    return std::any_of(op.makes.begin(), end,
                       [&](ValueIndex made) { return step_.values[made].storage == step_.values[value].storage; });
  }

  // Restores or recomputes dropped values whose storages die in this gap: the program could read a storage until then.
  void have_what_dies(GapIndex gap) {
    for (const GapEvent& event : step_.gaps[gap]) {
      if (event.born) continue;
      for (const ValueIndex value : step_.values.ids()) {
        const Value& it = step_.values[value];
        const bool last = it.storage == event.storage && it.overwritten_by == kNone;
        if (last && content_.alive(value) && !content_.there(value) && !content_.out(value)) have(value, 0);
      }
    }
  }

  // Drops and spills at random.
  void wander() {
    for (const auto& there : content_.all_there()) {
      const ValueIndex value = there.first;
      const bool goes = there.second || !content_.alive(value) || (movable(value) && may_drop(value));
      if (goes && once_in(wild_.drop_in)) {
        act(What::Drop, value);
      } else if (movable(value) && once_in(wild_.spill_in)) {
        act(What::Spill, value);
        if (once_in(6)) act(What::ReadAhead, value), act(What::Restore, value);
        if (once_in(9) && content_.out(value)) act(What::Spill, value);
      }
    }
  }
  bool may_drop(ValueIndex value) const { return reach_.may_drop(value, 2 * at_.value + (after_ ? 1 : 0)); }

  // Brings the value into memory by restore or recompute, together with all that the recompute reads.
  void have(ValueIndex value, int depth) {
    if (!good_ || content_.there(value)) return;
    if (content_.out(value)) return act(What::Restore, value);
    const OpIndex maker = step_.values[value].maker;
    if (maker == kNone || !step_.ops[maker].recompute || depth > 200) {
      good_ = false;
      return;
    }
    const StepOp& op = step_.ops[maker];
    const bool batch_norm = op.batch_norm && op.makes[0] == value && content_.there(op.makes[1]) &&
                            content_.there(op.makes[2]) && !once_in(3);
    const Recompute& way = batch_norm ? *op.batch_norm : *op.recompute;
    for (int round = 0; round < 8 && good_ && !all_there(op, way, batch_norm); ++round) {
      for (const ValueIndex read : way.reads) have(read, depth + 1);
      for (const ValueIndex read : before_of(op, batch_norm)) have(read, depth + 1);
    }
    good_ = good_ && all_there(op, way, batch_norm);
    if (!good_ || content_.there(value)) return;  // the recomputes of its inputs may have made it already
    Action action{.what = batch_norm ? What::BatchNorm : What::Recompute, .op = maker, .keeps = {value}};
    for (const ValueIndex made : op.makes) {
      const bool free = !batch_norm && made != value && !content_.there(made) && !content_.out(made);
      if (free && once_in(3)) action.keeps.push_back(made);
    }
    act(std::move(action));
  }
  std::vector<ValueIndex> before_of(const StepOp& op, bool batch_norm) const {
    std::vector<ValueIndex> before;
    for (const ValueIndex value : op.reads) {
      if (!batch_norm && written_by(op, value)) before.push_back(value);
    }
    return before;
  }
  bool all_there(const StepOp& op, const Recompute& way, bool batch_norm) const {
    const auto there = [&](ValueIndex value) { return content_.there(value); };
    const auto own = [&](ValueIndex value) { return content_.there(value) && content_.own(value); };
    const std::vector<ValueIndex> before = before_of(op, batch_norm);
    return std::all_of(way.reads.begin(), way.reads.end(), there) && std::all_of(before.begin(), before.end(), own);
  }

  // Brings every storage into the state in which the next step begins.
  void tidy_up() {
    std::set<StorageIndex> away;
    for (const ValueIndex value : schedule_.away) away.insert(step_.values[value].storage);
    Table<StorageIndex, std::optional<ValueIndex>> last(step_.storages.size());
    for (const ValueIndex i : step_.values.ids()) last[step_.values[i].storage] = i;
    for (int round = 0; round < 8 && good_; ++round) {
      for (const StorageIndex i : last.ids()) {
        if (last[i] && step_.storages[i].outlives && !content_.out(*last[i])) have(*last[i], 0);
      }
    }
    for (const StorageIndex i : last.ids()) {
      if (!good_ || !last[i] || !step_.storages[i].outlives) continue;
      const bool goes = away.contains(i);
      if (content_.out(*last[i]) != goes) act(goes ? What::Spill : What::Restore, *last[i]);
    }
    for (const ValueIndex value : step_.values.ids()) {
      if (!good_) break;
      const bool ours = content_.own(value) || content_.held(value);
      if (ours && (content_.there(value) || content_.out(value))) act(What::Drop, value);
    }
  }

  const Step& step_;
  const Wild wild_;
  std::mt19937_64 random_;
  Reach reach_;
  Content content_;
  Schedule schedule_;
  std::vector<ValueIndex> writing_;
  OpIndex at_;
  bool after_ = false;
  bool good_ = true;
};

}  // namespace

std::optional<Schedule> random_schedule(const Step& step, std::uint64_t seed, const Wild& wild) {
  return Author(step, seed, wild).write();
}

namespace {

class Mutation final {
 public:
  Mutation(const Step& step, const Schedule& schedule, std::uint64_t seed)
      : step_(step), changed_(schedule), random_(seed) {}

  Schedule make() {
    if (changed_.actions.empty() || below(20) == 0) {
      change_away();
    } else if (below(2) == 0) {
      change_list();
    } else {
      change_one(changed_.actions[below(changed_.actions.size())]);
    }
    return changed_;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  ValueIndex any() { return ValueIndex{below(step_.values.size())}; }

  void change_away() {
    std::vector<ValueIndex>& away = changed_.away;
    if (away.empty() || below(2) == 0) {
      away.push_back(any());
    } else {
      away.erase(away.begin() + static_cast<std::ptrdiff_t>(below(away.size())));
    }
  }
  // Removes or adds an action, or swaps two, each at the other's time.
  void change_list() {
    std::vector<Action>& actions = changed_.actions;
    const auto at = actions.begin() + static_cast<std::ptrdiff_t>(below(actions.size()));
    Action more = *at;
    switch (below(4)) {
      case 0:
        actions.erase(at);
        break;
      case 1: {
        Action& other =
            actions[below(2) == 0 ? below(actions.size())
                                  : std::min<std::size_t>(actions.size() - 1, std::size_t(at - actions.begin()) + 1)];
        std::swap(at->at, other.at);
        std::swap(at->after, other.after);
        std::swap(*at, other);
        break;
      }
      case 2:
        more.what = below(2) == 0 ? What::Drop : What::Spill;
        more.value = any();
        actions.insert(at, more);
        break;
      default:  // adds a drop of the action's value right after it
        if (!more.keeps.empty()) more.value = more.keeps[0];
        more.what = What::Drop;
        actions.insert(at + 1, more);
    }
  }
  void change_one(Action& action) {
    switch (below(5)) {
      case 0:
        action.value = any();
        break;
      case 1:
        action.value.value = std::min(action.value.value + 1, step_.values.size() - 1);
        break;
      case 2:
        action.what = static_cast<What>(below(8));
        break;
      case 3:
        action.op = OpIndex{below(step_.ops.size())};
        break;
      default:
        action.keeps.empty() ? action.keeps.push_back(any()) : action.keeps.pop_back();
    }
  }

  const Step& step_;
  Schedule changed_;
  std::mt19937_64 random_;
};

}  // namespace

Schedule mutated(const Step& step, const Schedule& schedule, std::uint64_t seed) {
  return Mutation(step, schedule, seed).make();
}

}  // namespace ullage::plan::test
