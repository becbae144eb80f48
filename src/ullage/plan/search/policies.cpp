// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/policies.h"

#include "ullage/plan/model/recompute_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ullage::plan {
namespace {

constexpr std::size_t kMostSegments = 40;
// As in kPolicies, which has their names. policies.h says where each is described.
enum Policy : std::size_t { kSegments, kRecomputeAll, kDropCheap, kDtr, kKnapsack };

using SavedIndex = Id<struct SavedTag, std::int32_t>;  // index into Policies::saved_

// A saved tensor: a forward pass makes it, the backward pass uses it, and it can be dropped between these.
struct Saved {
  MovedIndex value;
  SlotIndex slot;  // after the last use in the forward pass
  OpIndex made;    // the op that makes it
  OpIndex used;    // the op of its last use in the forward pass
  double bytes = 0;
  double seconds = 0;  // to recompute it if all inputs are present
  bool heavy = false;  // the op that makes it is a convolution, a matrix product or an attention
};

class Policies final {
 public:
  Policies(const Problem& problem, Timeline& timeline, std::int64_t least, SearchEnd& end, const PolicyFound& tell)
      : problem_(problem), timeline_(timeline), least_(least), end_(end), tell_(tell) {
    saved_at_.assign(problem.values.size(), kNone);
    for (const SlotIndex slot : problem_.slots.ids()) add_saved(slot);
    std::sort(saved_.begin(), saved_.end(), [](const Saved& a, const Saved& b) { return a.made < b.made; });
    for (const SavedIndex i : saved_.ids()) saved_at_[saved_[i].value] = i;
    seen_.assign(problem.values.size(), 0);
  }

  void segments();
  void recompute_all();
  void drop_cheap();
  void dtr();
  void knapsack();

 private:
  // Adds the value of `slot` to saved_ or passing_, if the slot comes after a use in a forward pass. A later slot of
  // the same value replaces an earlier one in saved_.
  void add_saved(SlotIndex slot);
  void drop(Choice& choice, const Saved& saved) const { choice.after[saved.slot] = After::Drop; }
  Outcome consider(Policy policy, const Choice& choice) {
    const Outcome outcome = timeline_.run(choice, least_);
    if (outcome.possible) tell_(policy, choice, outcome);
    return outcome;
  }
  // Is there no reason to drop more? So it is if the peak is within least_, if the choice cannot be carried out, or if
  // the search has to end.
  bool enough(const Outcome& outcome) const { return !outcome.possible || outcome.peak <= least_ || end_.is_here(); }
  std::size_t at_once() const { return end_.at_once(saved_.size(), problem_.positions.size()); }
  Table<SavedIndex, double> crossing_bytes() const;
  std::vector<OpIndex> cuts(std::size_t segments, const Table<SavedIndex, double>& crossing) const;
  RecipeIndex way_of(MovedIndex value) const {
    const Problem::Moved& it = problem_.values[value];
    return it.batch_norm != kNone ? it.batch_norm : it.recompute;
  }
  double chain_seconds(const Saved& saved, const Choice& choice);
  Table<SavedIndex, std::vector<SavedIndex>> users() const;

  const Problem& problem_;
  Timeline& timeline_;
  std::int64_t least_;  // bytes: a peak that is low enough
  SearchEnd& end_;
  const PolicyFound& tell_;
  Table<MovedIndex, SavedIndex> saved_at_;  // kNone: not a saved tensor
  std::vector<Saved> passing_;              // values whose last use in the step is in the forward pass: not saved
  Table<SavedIndex, Saved> saved_;          // in the order in which they are made
  std::vector<MovedIndex> todo_;
  Table<MovedIndex, std::uint64_t> seen_;  // number of the last walk that met it
  std::uint64_t walk_ = 0;
};

void Policies::add_saved(SlotIndex slot) {
  const Step& step = *problem_.step;
  const Problem::Slot& it = problem_.slots[slot];
  const MovedIndex v = it.value;
  const Problem::Moved& value = problem_.values[v];
  const OpIndex maker = step.values[value.value].maker;
  const RecipeIndex way = way_of(v);
  const OpIndex used = problem_.positions[it.position].op;
  if (maker == kNone || used == kNone || step.ops[used].phase != trace::Phase::Forward) return;
  const StepOp& op = step.ops[maker];
  if (it.last) passing_.push_back({v, slot, maker, used});
  if (way == kNone || !it.drop || it.last) return;
  const Saved saved{
      v, slot, maker, used, static_cast<double>(value.bytes), problem_.recipes[way].seconds, is_heavy(op.name)};
  if (saved_at_[v] != kNone) {
    saved_[saved_at_[v]] = saved;
    return;
  }
  saved_at_[v] = saved_.push_back(saved);
}

// Returns a figure for the moment after each saved tensor is made. It counts the bytes of saved tensors that were made
// until then and are used after it in the forward pass. They would cross the end of a segment that ends there.
Table<SavedIndex, double> Policies::crossing_bytes() const {
  Table<SavedIndex, double> crossing(saved_.size(), 0);
  for (const SavedIndex at : saved_.ids()) {
    for (const SavedIndex other : IdRange<SavedIndex>{{}, at.next()}) {
      if (saved_[other].used > saved_[at].made) crossing[at] += saved_[other].bytes;
    }
  }
  return crossing;
}

// Returns the ops after which a segment ends. The ends are spaced so that each segment makes about the same bytes of
// saved tensors. Then each end is moved, by half a segment at most, to where the fewest bytes cross it.
std::vector<OpIndex> Policies::cuts(std::size_t segments, const Table<SavedIndex, double>& crossing) const {
  double all = 0;
  for (const Saved& saved : saved_) all += saved.bytes;
  const double each = all / static_cast<double>(segments);
  std::vector<OpIndex> ends;
  for (std::size_t i = 1; i < segments; ++i) {
    double before = 0, least = std::numeric_limits<double>::infinity();
    OpIndex best;
    for (const SavedIndex at : saved_.ids()) {
      before += saved_[at].bytes;
      if (std::abs(before - all * static_cast<double>(i) / static_cast<double>(segments)) > each / 2) continue;
      if (crossing[at] < least) least = crossing[at], best = saved_[at].made;
    }
    if (best > OpIndex{0} && (ends.empty() || best > ends.back())) ends.push_back(best);
  }
  return ends;
}

// Within a segment, drops the saved tensors that are made there and have their last use in the forward pass there. A
// saved tensor that crosses the end of its segment is kept. A value that is not saved but crosses the end is held for
// recomputing, if the lever `hold` is allowed. Tries this for the first segment, the first two and so on; the segments
// after those keep all. Before that, tries plain execution, which drops nothing.
void Policies::segments() {
  consider(kSegments, plain_choice(problem_));
  const Table<SavedIndex, double> crossing = crossing_bytes();
  std::vector<OpIndex> last;
  for (std::size_t count = 2; count <= kMostSegments; ++count) {
    const std::vector<OpIndex> ends = cuts(count, crossing);
    if (ends == last) continue;
    last = ends;
    Choice choice = plain_choice(problem_);
    OpIndex begin;
    for (const OpIndex end : ends) {
      if (end_.is_here()) return;
      for (const Saved& saved : saved_) {
        if (saved.made >= begin && saved.made <= end && saved.used <= end) drop(choice, saved);
      }
      for (const Saved& passing : passing_) {
        const bool crosses = passing.made <= end && passing.used > end;
        if (crosses && problem_.levers.hold) choice.after[passing.slot] = After::Keep;
      }
      begin = end.next();
      consider(kSegments, choice);
    }
  }
}

// Drops every saved tensor. Then does the same with Choice::again set: a tensor leaves again after each use for which
// it was recomputed.
void Policies::recompute_all() {
  Choice choice = plain_choice(problem_);
  for (const Saved& saved : saved_) drop(choice, saved);
  consider(kRecomputeAll, choice);
  std::fill(choice.again.begin(), choice.again.end(), std::uint8_t{1});
  consider(kRecomputeAll, choice);
}

// Drops the saved tensors that are not heavy to recompute.
void Policies::drop_cheap() {
  Choice choice = plain_choice(problem_);
  for (const Saved& saved : saved_) {
    if (!saved.heavy) drop(choice, saved);
  }
  consider(kDropCheap, choice);
}

// Returns the seconds to recompute a tensor, plus those of its dropped inputs, of their dropped inputs, and so on. Each
// is counted once.
double Policies::chain_seconds(const Saved& saved, const Choice& choice) {
  ++walk_;
  todo_.assign(1, saved.value);
  seen_[saved.value] = walk_;
  double seconds = 0;
  for (std::size_t i = 0; i < todo_.size(); ++i) {
    const RecipeIndex way = way_of(todo_[i]);
    if (way == kNone) continue;
    const Problem::Recipe& recipe = problem_.recipes[way];
    seconds += recipe.seconds;
    for (const MovedIndex read : problem_.lists[recipe.reads]) {
      const SavedIndex at = saved_at_[read];
      const bool gone = at != kNone && choice.after[saved_[at].slot] == After::Drop;
      if (!gone || seen_[read] == walk_) continue;
      seen_[read] = walk_;
      todo_.push_back(read);
    }
  }
  end_.add(todo_.size());
  return seconds;
}

// Returns, for each saved tensor, the saved tensors that are recomputed from it.
Table<SavedIndex, std::vector<SavedIndex>> Policies::users() const {
  Table<SavedIndex, std::vector<SavedIndex>> users(saved_.size());
  for (const SavedIndex i : saved_.ids()) {
    for (const MovedIndex read : problem_.lists[problem_.recipes[way_of(saved_[i].value)].reads]) {
      const SavedIndex at = saved_at_[read];
      if (at != kNone) users[at].push_back(i);
    }
  }
  return users;
}

// Drops one tensor after the other, or at_once() of them, until enough() says so. Each time it looks at the tensors
// whose last use in the forward pass comes before the peak. It drops those with the least chain_seconds / (bytes *
// positions from that use to the peak).
void Policies::dtr() {
  Choice choice = plain_choice(problem_);
  const Table<SavedIndex, std::vector<SavedIndex>> users = this->users();
  Table<SavedIndex, double> chains;
  chains.reserve(saved_.size());
  for (const Saved& saved : saved_) chains.push_back(chain_seconds(saved, choice));
  std::vector<std::pair<double, SavedIndex>> scores;
  std::vector<SavedIndex> touched;
  Table<SavedIndex, std::uint8_t> is_touched(saved_.size(), 0);
  for (std::size_t evicted = 0; evicted <= saved_.size(); evicted += at_once()) {
    const Outcome outcome = consider(kDtr, choice);
    if (enough(outcome)) return;
    scores.clear();
    for (const SavedIndex i : saved_.ids()) {
      const PositionIndex at = problem_.slots[saved_[i].slot].position;
      if (choice.after[saved_[i].slot] == After::Drop || at >= outcome.peak_at) continue;
      scores.emplace_back(chains[i] / (saved_[i].bytes * static_cast<double>(outcome.peak_at.value - at.value)), i);
    }
    if (scores.empty()) return;
    const std::size_t most = std::min(at_once(), scores.size());
    std::partial_sort(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(most), scores.end());
    touched.clear();
    for (std::size_t i = 0; i < most; ++i) {
      drop(choice, saved_[scores[i].second]);
      touched.push_back(scores[i].second), is_touched[scores[i].second] = 1;
    }
    // The tensors made from the dropped ones now have longer chains. If one of them is dropped itself, the tensors made
    // from it have longer chains too.
    for (std::size_t t = 0; t < touched.size(); ++t) {
      for (const SavedIndex user : users[touched[t]]) {
        if (end_.is_here()) return;
        chains[user] = chain_seconds(saved_[user], choice);
        const bool gone = choice.after[saved_[user].slot] == After::Drop;
        if (!gone || is_touched[user] != 0) continue;
        touched.push_back(user), is_touched[user] = 1;
      }
    }
    for (const SavedIndex i : touched) is_touched[i] = 0;
  }
}

// Drops tensors in the order of their seconds per byte, the cheapest first, until enough() says so.
void Policies::knapsack() {
  std::vector<Saved> order(saved_.begin(), saved_.end());
  std::sort(order.begin(), order.end(),
            [](const Saved& a, const Saved& b) { return a.seconds * b.bytes < b.seconds * a.bytes; });
  Choice choice = plain_choice(problem_);
  Outcome outcome = consider(kKnapsack, choice);
  for (std::size_t i = 0; i < order.size() && !enough(outcome);) {
    for (std::size_t n = at_once(); n > 0 && i < order.size(); --n) drop(choice, order[i++]);
    outcome = consider(kKnapsack, choice);
  }
}

}  // namespace

void try_policies(const Problem& problem, Timeline& timeline, std::int64_t least, SearchEnd end,
                  const PolicyFound& tell) {
  Policies policies(problem, timeline, least, end, tell);
  for (const auto policy :
       {&Policies::segments, &Policies::recompute_all, &Policies::drop_cheap, &Policies::dtr, &Policies::knapsack}) {
    end.begin();
    (policies.*policy)();
  }
}

}  // namespace ullage::plan
