// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/policies.h"

#include "ullage/plan/rerun.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ullage::plan {
namespace {

constexpr std::size_t kMostSegments = 40;
enum Policy : std::size_t { kSegments, kRecomputeAll, kDropCheap, kDtr, kKnapsack };

// A saved tensor of a forward pass that can be dropped behind its last use there.
struct Saved {
  std::size_t value = 0;  // of the problem
  std::size_t slot = 0;   // behind that use
  std::size_t made = 0;   // ops
  std::size_t used = 0;   // that use
  double bytes = 0;
  double seconds = 0;  // to make it again from what it was made of
  bool heavy = false;
};

class Policies final {
 public:
  Policies(const Problem& problem, Timeline& timeline, std::int64_t least, const std::atomic<bool>* stop,
           const PolicyTold& tell)
      : problem_(problem), timeline_(timeline), least_(least), stop_(stop), tell_(tell) {
    saved_at_.assign(problem.values.size(), -1);
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) add_saved(slot);
    std::sort(saved_.begin(), saved_.end(), [](const Saved& a, const Saved& b) { return a.made < b.made; });
    for (std::size_t i = 0; i < saved_.size(); ++i) saved_at_[saved_[i].value] = static_cast<std::int64_t>(i);
    seen_.assign(problem.values.size(), 0);
  }

  void segments();
  void recompute_all();
  void drop_cheap();
  void dtr();
  void knapsack();

 private:
  // `slot`: of those of one value behind a use in a forward pass the last one stays.
  void add_saved(std::size_t slot);
  void drop(Choice& choice, const Saved& saved) const { choice.after[saved.slot] = After::Drop; }
  Outcome consider(Policy policy, const Choice& choice) {
    const Outcome outcome = timeline_.run(choice, least_);
    if (outcome.possible) tell_(policy, choice, outcome);
    return outcome;
  }
  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  bool enough(const Outcome& outcome) const { return !outcome.possible || outcome.peak <= least_ || stopped(); }
  std::vector<double> crossing_bytes() const;
  std::vector<std::size_t> cuts(std::size_t segments, const std::vector<double>& crossing) const;
  std::int32_t way_of(std::size_t value) const {
    const Problem::Moved& it = problem_.values[value];
    return it.apply >= 0 ? it.apply : it.rerun;
  }
  double chain_seconds(const Saved& saved, const Choice& choice);
  std::vector<std::vector<std::size_t>> users() const;

  const Problem& problem_;
  Timeline& timeline_;
  std::int64_t least_;
  const std::atomic<bool>* stop_;
  const PolicyTold& tell_;
  std::vector<std::int64_t> saved_at_;  // by value: index into `saved_`, or -1
  std::vector<Saved> passing_;          // not saved, but read in the forward pass: that use is the last one
  std::vector<Saved> saved_;            // in the order of their making
  std::vector<std::size_t> todo_;
  std::vector<std::uint64_t> seen_;  // by value: in the walk of this number
  std::uint64_t walk_ = 0;
};

void Policies::add_saved(std::size_t slot) {
  const Step& step = *problem_.step;
  const Problem::Slot& it = problem_.slots[slot];
  const auto v = static_cast<std::size_t>(it.value);
  const Problem::Moved& value = problem_.values[v];
  const OpIndex maker = step.values[value.value.value].maker;
  const std::int32_t way = way_of(v);
  const std::int32_t used = problem_.positions[static_cast<std::size_t>(it.position)].op;
  if (maker == kNone || used < 0 || step.ops[static_cast<std::size_t>(used)].phase != trace::Phase::Forward) return;
  const StepOp& op = step.ops[maker.value];
  if (it.last) passing_.push_back({v, slot, maker.value, static_cast<std::size_t>(used)});
  if (way < 0 || !it.drop || it.last) return;
  const Saved saved{v,
                    slot,
                    maker.value,
                    static_cast<std::size_t>(used),
                    static_cast<double>(value.bytes),
                    problem_.recipes[static_cast<std::size_t>(way)].seconds,
                    is_heavy(op.name)};
  if (saved_at_[v] >= 0) {
    saved_[static_cast<std::size_t>(saved_at_[v])] = saved;
    return;
  }
  saved_at_[v] = static_cast<std::int64_t>(saved_.size());
  saved_.push_back(saved);
}

// Behind the making of each saved tensor: bytes of those made until then and used later.
std::vector<double> Policies::crossing_bytes() const {
  std::vector<double> crossing(saved_.size(), 0);
  for (std::size_t at = 0; at < saved_.size(); ++at) {
    for (std::size_t other = 0; other <= at; ++other) {
      if (saved_[other].used > saved_[at].made) crossing[at] += saved_[other].bytes;
    }
  }
  return crossing;
}

// Ops behind which a segment ends: where about the same bytes were saved in each, there where least cross.
std::vector<std::size_t> Policies::cuts(std::size_t segments, const std::vector<double>& crossing) const {
  double all = 0;
  for (const Saved& saved : saved_) all += saved.bytes;
  const double each = all / static_cast<double>(segments);
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < segments; ++i) {
    double before = 0, least = std::numeric_limits<double>::infinity();
    std::size_t best = 0;
    for (std::size_t at = 0; at < saved_.size(); ++at) {
      before += saved_[at].bytes;
      if (std::abs(before - all * static_cast<double>(i) / static_cast<double>(segments)) > each / 2) continue;
      if (crossing[at] < least) least = crossing[at], best = saved_[at].made;
    }
    if (best > 0 && (ends.empty() || best > ends.back())) ends.push_back(best);
  }
  return ends;
}

// What is made and used up within a segment is dropped, what the next one reads is held; the first so many segments,
// the last ones keep all.
void Policies::segments() {
  consider(kSegments, plain_choice(problem_));
  const std::vector<double> crossing = crossing_bytes();
  std::vector<std::size_t> last;
  for (std::size_t count = 2; count <= kMostSegments && !stopped(); ++count) {
    const std::vector<std::size_t> ends = cuts(count, crossing);
    if (ends == last) continue;
    last = ends;
    Choice choice = plain_choice(problem_);
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      for (const Saved& saved : saved_) {
        if (saved.made >= begin && saved.made <= end && saved.used <= end) drop(choice, saved);
      }
      for (const Saved& passing : passing_) {
        const bool crosses = passing.made <= end && passing.used > end;
        if (crosses && problem_.levers.hold) choice.after[passing.slot] = After::Keep;
      }
      begin = end + 1;
      consider(kSegments, choice);
    }
  }
}

void Policies::recompute_all() {
  Choice choice = plain_choice(problem_);
  for (const Saved& saved : saved_) drop(choice, saved);
  consider(kRecomputeAll, choice);
  std::fill(choice.again.begin(), choice.again.end(), std::uint8_t{1});
  consider(kRecomputeAll, choice);
}

void Policies::drop_cheap() {
  Choice choice = plain_choice(problem_);
  for (const Saved& saved : saved_) {
    if (!saved.heavy) drop(choice, saved);
  }
  consider(kDropCheap, choice);
}

// With the values it was made of that are dropped too.
double Policies::chain_seconds(const Saved& saved, const Choice& choice) {
  ++walk_;
  todo_.assign(1, saved.value);
  seen_[saved.value] = walk_;
  double seconds = 0;
  for (std::size_t i = 0; i < todo_.size(); ++i) {
    const std::int32_t way = way_of(todo_[i]);
    if (way < 0) continue;
    const Problem::Recipe& recipe = problem_.recipes[static_cast<std::size_t>(way)];
    seconds += recipe.seconds;
    for (std::int32_t r = recipe.reads.begin; r < recipe.reads.end; ++r) {
      const auto read = static_cast<std::size_t>(problem_.lists[static_cast<std::size_t>(r)]);
      const std::int64_t at = saved_at_[read];
      const bool gone = at >= 0 && choice.after[saved_[static_cast<std::size_t>(at)].slot] == After::Drop;
      if (!gone || seen_[read] == walk_) continue;
      seen_[read] = walk_;
      todo_.push_back(read);
    }
  }
  return seconds;
}

// Of each saved tensor those that are made from it, as indices into `saved_`.
std::vector<std::vector<std::size_t>> Policies::users() const {
  std::vector<std::vector<std::size_t>> users(saved_.size());
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    const Range reads = problem_.recipes[static_cast<std::size_t>(way_of(saved_[i].value))].reads;
    for (std::int32_t r = reads.begin; r < reads.end; ++r) {
      const std::int64_t at = saved_at_[static_cast<std::size_t>(problem_.lists[static_cast<std::size_t>(r)])];
      if (at >= 0) users[static_cast<std::size_t>(at)].push_back(i);
    }
  }
  return users;
}

void Policies::dtr() {
  Choice choice = plain_choice(problem_);
  const std::vector<std::vector<std::size_t>> users = this->users();
  std::vector<double> chains;
  chains.reserve(saved_.size());
  for (const Saved& saved : saved_) chains.push_back(chain_seconds(saved, choice));
  std::vector<std::size_t> touched;
  for (std::size_t evicted = 0; evicted <= saved_.size(); ++evicted) {
    const Outcome outcome = consider(kDtr, choice);
    if (enough(outcome)) return;
    std::size_t least = saved_.size();
    double least_score = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      const std::int32_t at = problem_.slots[saved_[i].slot].position;
      if (choice.after[saved_[i].slot] == After::Drop || at >= outcome.peak_at) continue;
      const double score = chains[i] / (saved_[i].bytes * static_cast<double>(outcome.peak_at - at));
      if (score < least_score) least_score = score, least = i;
    }
    if (least == saved_.size()) return;
    drop(choice, saved_[least]);
    // Longer are the chains of what is made from it, and from there on of what is made from dropped ones.
    touched.assign(1, least);
    for (std::size_t t = 0; t < touched.size(); ++t) {
      for (const std::size_t user : users[touched[t]]) {
        chains[user] = chain_seconds(saved_[user], choice);
        const bool gone = choice.after[saved_[user].slot] == After::Drop;
        if (gone && std::find(touched.begin(), touched.end(), user) == touched.end()) touched.push_back(user);
      }
    }
  }
}

// In the order of their seconds by the byte: enough bytes for each budget; which is enough, only the timeline tells.
void Policies::knapsack() {
  std::vector<Saved> order = saved_;
  std::sort(order.begin(), order.end(),
            [](const Saved& a, const Saved& b) { return a.seconds * b.bytes < b.seconds * a.bytes; });
  Choice choice = plain_choice(problem_);
  Outcome outcome = consider(kKnapsack, choice);
  for (const Saved& saved : order) {
    if (enough(outcome)) return;
    drop(choice, saved);
    outcome = consider(kKnapsack, choice);
  }
}

}  // namespace

void try_policies(const Problem& problem, Timeline& timeline, std::int64_t least, const std::atomic<bool>* stop,
                  const PolicyTold& tell) {
  Policies policies(problem, timeline, least, stop, tell);
  policies.segments();
  policies.recompute_all();
  policies.drop_cheap();
  policies.dtr();
  policies.knapsack();
}

}  // namespace ullage::plan
