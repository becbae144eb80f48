// SPDX-License-Identifier: Apache-2.0
#include "plan/cheapest_schedule.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ullage::plan::test {
namespace {

// Where a value is: nowhere, in memory, in memory with a copy on disk, or only on disk. A state has three bits for each
// value.
enum Where : std::uint64_t { kNowhere, kThere, kThereAndCopied, kOut };
using State = std::uint64_t;

struct Node {
  double seconds = INFINITY;
  State from = 0;
  std::vector<Action> actions;  // that lead from `from` to here
  bool done = false;
};

class Search final {
 public:
  Search(const Step& step, const Ask& ask, Table<ValueIndex, Where> begin)
      : step_(step), ask_(ask), begin_(std::move(begin)), alive_(2 * step.ops.size() + 2) {
    find_lives();
  }

  CheapestOutcome run(std::size_t most_states) {
    State first = 0;
    for (const ValueIndex v : step_.values.ids()) first = with(first, v, begin_[v]);
    if (level(first, 0) > ask_.budget.count) return NoSchedule{};
    reach(key(0, first), 0, 0, {});
    while (!queue_.empty()) {
      const State now = queue_.top().second;
      queue_.pop();
      if (nodes_[now].done) continue;
      nodes_[now].done = true;
      if (place(now) == alive_.size() - 1) {
        if (ends_well(state(now))) return schedule_to(now);
        continue;
      }
      if (nodes_.size() > most_states) return TooManyStates{};
      expand(now);
    }
    return NoSchedule{};
  }

 private:
  struct Alive {  // which storages are alive, and the newest value of each, if it has one
    Table<StorageIndex, bool> alive;
    Table<StorageIndex, std::optional<ValueIndex>> newest;
  };

  // A key is a place and a state. Places: 0 is the begin, 1 + 2 i is before op i, 2 + 2 i is after it, and the last one
  // is the end.
  static std::size_t place(State key) { return key >> 48; }
  static State state(State key) { return key & ((State{1} << 48) - 1); }
  static State key(std::size_t place, State state) { return State{place} << 48 | state; }
  static Where where(State state, ValueIndex v) { return Where(state >> 3 * v.value & 7); }
  static State with(State state, ValueIndex v, Where w) {
    return (state & ~(State{7} << 3 * v.value)) | State{w} << 3 * v.value;
  }
  static bool there(Where w) { return w == kThere || w == kThereAndCopied; }
  std::uint64_t bytes(ValueIndex v) const { return step_.storages[step_.values[v].storage].bytes.count; }

  void find_lives();
  void let_die(Alive& now, GapIndex gap) const;
  bool newest(ValueIndex v, std::size_t place) const {
    const StorageIndex s = step_.values[v].storage;
    return alive_[place].alive[s] && alive_[place].newest[s] == v;
  }

  std::uint64_t level(State state, const Alive& now) const {
    std::uint64_t sum = step_.level.count;
    for (const StorageIndex s : step_.storages.ids()) {
      if (step_.storages[s].from_before) sum -= step_.storages[s].bytes.count;
      if (now.alive[s] && !now.newest[s]) sum += step_.storages[s].bytes.count;
    }
    for (const ValueIndex v : step_.values.ids()) sum += there(where(state, v)) ? bytes(v) : 0;
    return sum;
  }
  std::uint64_t level(State state, std::size_t place) const { return level(state, alive_[place]); }

  void reach(State to, double seconds, State from, std::vector<Action> actions) {
    Node& node = nodes_[to];
    if (node.seconds <= seconds) return;
    node = {seconds, from, std::move(actions), false};
    queue_.push({-seconds, to});
  }

  void expand(State now) {
    if (place(now) == 0) return pass_gap(now, GapIndex{0});
    const OpIndex op{(place(now) - 1) / 2};
    const bool after = place(now) % 2 == 0;
    for (const ValueIndex v : step_.values.ids()) act_on(now, v, op, after);
    for (const OpIndex o : IdRange<OpIndex>{OpIndex{0}, after ? op.next() : op}) {
      if (step_.ops[o].recompute && ask_.levers.recompute) recompute(now, o, false, op, after);
      if (step_.ops[o].batch_norm && ask_.levers.batch_norm) recompute(now, o, true, op, after);
    }
    after ? pass_gap(now, gap_after(op)) : run_op(now, op);
  }

  bool spillable(ValueIndex v) const {
    const StepStorage& s = step_.storages[step_.values[v].storage];
    if (!s.movable) return false;
    if (s.from_before && s.outlives) return ask_.levers.state;
    return ask_.levers.spill || ((s.from_before || s.outlives) && ask_.levers.state);
  }

  void act_on(State now, ValueIndex v, OpIndex op, bool after) {
    const Where w = where(state(now), v);
    if (w == kNowhere) return;
    const auto go = [&](Where to, double seconds, Action::What what) {
      reach(key(place(now), with(state(now), v, to)), nodes_[now].seconds + seconds, now, {{what, op, after, v}});
    };
    const bool fixed = newest(v, place(now)) && !step_.storages[step_.values[v].storage].movable;
    if (!fixed) go(kNowhere, 0, Action::What::Drop);
    if (!spillable(v)) return;
    if (w == kThere) go(kOut, double(bytes(v)) / ask_.rates.write, Action::What::Spill);
    if (w == kThereAndCopied) go(kOut, 0, Action::What::Spill);
    if (w == kOut && level(state(now), place(now)) + bytes(v) <= ask_.budget.count) {
      go(kThereAndCopied, double(bytes(v)) / ask_.rates.read, Action::What::Restore);
    }
  }

  void recompute(State now, OpIndex o, bool batch_norm, OpIndex op, bool after) {
    const StepOp& it = step_.ops[o];
    const Recompute& way = batch_norm ? *it.batch_norm : *it.recompute;
    for (const ValueIndex read : way.reads) {
      if (!there(where(state(now), read))) return;
    }
    if (level(state(now), place(now)) + way.rise.count > ask_.budget.count) return;
    State left = state(now);
    for (const ValueIndex v : step_.values.ids()) {
      if (!batch_norm && step_.values[v].overwritten_by == o) {
        if (!there(where(left, v))) return;
        left = with(left, v, kNowhere);
      }
    }
    const std::size_t made = batch_norm ? 1 : it.makes.size();
    for (std::size_t keeps = 0; keeps < std::size_t{1} << made; ++keeps) {
      State to = left;
      Action action{batch_norm ? Action::What::BatchNorm : Action::What::Recompute, op, after, {}, o, {}};
      bool twice = false;
      for (std::size_t i = 0; i < made; ++i) {
        if ((keeps >> i & 1) == 0) continue;
        const Where before = where(to, it.makes[i]);
        twice = twice || there(before) || before == kOut;
        to = with(to, it.makes[i], kThere);
        action.keeps.push_back(it.makes[i]);
      }
      if (twice || level(to, place(now)) > ask_.budget.count) continue;
      reach(key(place(now), to), nodes_[now].seconds + way.took.count, now, {action});
    }
  }

  void run_op(State now, OpIndex op) {
    const StepOp& it = step_.ops[op];
    State to = state(now);
    for (std::size_t i = 0; i < it.reads.size(); ++i) {
      const ValueIndex v = it.reads[i];
      const bool written = step_.values[v].overwritten_by == op;
      const bool unread = std::find(it.unread.begin(), it.unread.end(), i) != it.unread.end();
      if ((!unread || written) && !there(where(to, v))) return;
      if (written) to = with(to, v, kNowhere);
    }
    if (level(state(now), place(now)) + it.rise.count > ask_.budget.count) return;
    for (const ValueIndex made : it.makes) to = with(to, made, kThere);
    for (const StorageIndex hidden : it.hides) {
      const auto value = alive_[place(now) + 1].newest[hidden];
      if (value) to = with(to, *value, kThere);
    }
    if (level(to, place(now) + 1) <= ask_.budget.count) reach(key(place(now) + 1, to), nodes_[now].seconds, now, {});
  }

  // Reaches one state for each choice of which dying values are held.
  void pass_gap(State now, GapIndex gap) {
    const std::vector<GapEvent>& events = step_.gaps[gap];
    std::vector<ValueIndex> dying;
    for (const GapEvent& event : events) {
      const auto value = alive_[place(now)].newest[event.storage];
      if (event.born || !value) continue;
      const Where w = where(state(now), *value);
      if (w == kNowhere) return;  // not allowed: the program could still have read it
      dying.push_back(*value);
    }
    const std::size_t choices = ask_.levers.hold && gap > GapIndex{0} ? std::size_t{1} << dying.size() : 1;
    for (std::size_t held = 0; held < choices; ++held) {
      State to = state(now);
      Alive lives = alive_[place(now)];
      std::vector<Action> actions;
      bool fits = true;
      std::size_t next = 0;
      for (const GapEvent& event : events) {
        const StorageIndex s = event.storage;
        if (event.born) {
          lives.alive[s] = true, lives.newest[s] = first_of(s);
          if (lives.newest[s]) to = with(to, *lives.newest[s], kThere);
        } else {
          const auto value = lives.newest[s];
          lives.alive[s] = false;
          if (next < dying.size() && value == dying[next]) {
            if (held >> next & 1) {
              actions.push_back({Action::What::Hold, op_before(gap), true, *value});
            } else {
              to = with(to, *value, kNowhere);
            }
            ++next;
          }
        }
        fits = fits && level(to, lives) <= ask_.budget.count;
      }
      if (fits) reach(key(place(now) + 1, to), nodes_[now].seconds, now, std::move(actions));
    }
  }

  std::optional<ValueIndex> first_of(StorageIndex s) const {
    for (const ValueIndex v : step_.values.ids()) {
      if (step_.values[v].storage == s && step_.values[v].maker == kNone) return v;
    }
    return std::nullopt;
  }

  bool ends_well(State end) const {
    for (const ValueIndex v : step_.values.ids()) {
      const Where w = where(end, v);
      const StorageIndex s = step_.values[v].storage;
      if (!newest(v, alive_.size() - 1)) {
        if (w != kNowhere) return false;
      } else if (const StorageIndex next = step_.in_next_step(s); next != kNone) {
        if (w != begin_[*first_of(next)]) return false;  // so that the next step begins as this one did
      } else if (!there(w)) {
        return false;
      }
    }
    return true;
  }

  CheapestOutcome schedule_to(State end) {
    std::vector<Action> actions;
    for (State at = end; place(at) > 0; at = nodes_[at].from) {
      const std::vector<Action>& some = nodes_[at].actions;
      actions.insert(actions.end(), some.rbegin(), some.rend());
    }
    std::reverse(actions.begin(), actions.end());
    Cheapest found{{nodes_[end].seconds}, {std::move(actions), {}}};
    for (const ValueIndex v : step_.values.ids()) {
      const StorageIndex next = step_.in_next_step(step_.values[v].storage);
      const bool last = next != kNone && step_.values[v].overwritten_by == kNone;
      if (last && begin_[*first_of(next)] == kOut) found.schedule.away.push_back(v);
    }
    return found;
  }

  const Step& step_;
  const Ask& ask_;
  Table<ValueIndex, Where> begin_;
  std::vector<Alive> alive_;  // by place
  std::unordered_map<State, Node> nodes_;
  std::priority_queue<std::pair<double, State>> queue_;
};

void Search::find_lives() {
  Alive now;
  now.alive.resize(step_.storages.size()), now.newest.resize(step_.storages.size());
  for (const StorageIndex s : step_.storages.ids()) {
    if (step_.storages[s].from_before) now.alive[s] = true, now.newest[s] = first_of(s);
  }
  alive_[0] = now;
  for (const GapIndex gap : step_.gaps.ids()) {
    for (const GapEvent& event : step_.gaps[gap]) {
      now.alive[event.storage] = event.born;
      now.newest[event.storage] = event.born ? first_of(event.storage) : std::nullopt;
    }
    alive_[1 + 2 * gap.value] = now;
    if (!step_.ops.has(op_after(gap))) break;
    const StepOp& op = step_.ops[op_after(gap)];
    for (const ValueIndex made : op.makes) {
      const StorageIndex s = step_.values[made].storage;
      now.alive[s] = true, now.newest[s] = made;
    }
    for (const StorageIndex s : op.hides) now.alive[s] = true, now.newest[s] = first_of(s);
    alive_[2 + 2 * gap.value] = now;
  }
}

}  // namespace

CheapestOutcome cheapest_schedule(const Step& step, const Ask& ask, std::size_t most_states) {
  ULLAGE_CHECK(step.values.size() <= 16, "too many values to try all schedules");
  Table<ValueIndex, Where> begin(step.values.size(), kNowhere);
  std::vector<ValueIndex> carried;
  for (const ValueIndex v : step.values.ids()) {
    const StepStorage& storage = step.storages[step.values[v].storage];
    if (step.values[v].maker != kNone || !storage.from_before) continue;
    begin[v] = kThere;
    if (step.in_last_step(step.values[v].storage) == kNone || !storage.movable) continue;
    if (ask.levers.state || (ask.levers.spill && !storage.outlives)) carried.push_back(v);
  }
  CheapestOutcome best = NoSchedule{};
  for (std::size_t choice = 0; choice < std::size_t(std::pow(3, double(carried.size()))); ++choice) {
    std::size_t rest = choice;
    for (const ValueIndex v : carried) begin[v] = Where(kThere + rest % 3), rest /= 3;
    CheapestOutcome found = Search(step, ask, begin).run(most_states);
    if (std::holds_alternative<TooManyStates>(found)) return found;
    const auto* cheap = std::get_if<Cheapest>(&found);
    const auto* before = std::get_if<Cheapest>(&best);
    if (cheap != nullptr && (before == nullptr || cheap->seconds < before->seconds)) best = std::move(found);
  }
  return best;
}

}  // namespace ullage::plan::test
