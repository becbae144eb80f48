// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/optimizer_calls.h"

#include "ullage/trace/meaning/rarest_call.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace ullage::trace {
namespace {

// These bound the memory of this class, however long a program runs and whatever it does.
constexpr std::size_t kMostParameters = 1u << 18;
constexpr std::size_t kMostOptimizers = 256;
constexpr std::size_t kMostOptimizersOfOne = 4;
constexpr std::size_t kMostWork = 1024;  // holds two steps of a GAN whose critic's optimizer is called 500 times a step

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
  return hash ^ (hash >> 29);
}

}  // namespace

OptimizerCalls::Parameter* OptimizerCalls::known(StorageId parameter) {
  const auto found = parameters_.find(parameter.value);
  if (found != parameters_.end()) return &found->second;
  if (parameters_.size() >= kMostParameters) return nullptr;
  Parameter& added = parameters_[parameter.value];
  added.first = runs_;
  return &added;
}

bool OptimizerCalls::parameter_used(StorageId parameter, bool followed) {
  Parameter* one = known(parameter);
  if (one == nullptr) return false;
  const bool first = !std::exchange(one->used, true);
  one->followed |= followed;
  // An input that requires grad (a gradient penalty has one) looks like a parameter, but no step after its own uses it.
  // So steps are certain without its update. A leaf counts as a parameter, and its first update is waited for, once it
  // is used again after another run of updates has begun.
  if (sure_ || one->updated || one->waits || one->first == runs_) return first;
  one->waits = true;
  waiting_.push_back(parameter.value);
  return first;
}

void OptimizerCalls::update(std::uint64_t op, std::uint64_t token, StorageId parameter) {
  Parameter* one = known(parameter);
  if (one != nullptr && any_backward_) one->updated = true;
  const bool counts = any_backward_ && (one == nullptr || one->followed);
  if (!counts) return other();
  runs_ += !run_.open;
  run_.open = true;
  run_.last_op = op;
  run_.hash = mix(mix(run_.hash, token), parameter.value);
  work_hash_ = mix(work_hash_, token);
  if (!run_.counted) {
    if (run_.parameters.size() < kMostParameters) run_.parameters.push_back(parameter.value);
  } else if (!calls_.empty() && call_count_ == calls_.size()) {
    calls_.back().end_op = op + 1;  // the call had been counted, but goes on
  }
}

void OptimizerCalls::backward(std::uint64_t token) {
  any_backward_ = true;
  if (run_.open) ended();
  work_hash_ = mix(work_hash_, token);
}

void OptimizerCalls::ended() {
  if (run_.open && !run_.counted) count_run();
  run_ = {};
}

// If the open run equals the newest call of an optimizer, the call is over now. Else the next backward pass ends it.
void OptimizerCalls::other() {
  if (!run_.open || run_.counted) return;
  for (const Optimizer& one : optimizers_) {
    if (one.hash == run_.hash) return count_run();
  }
}

void OptimizerCalls::count_run() {
  const std::uint32_t optimizer = whose(run_.parameters);
  Optimizer& one = optimizers_[optimizer];
  one.parameters = run_.parameters.size();
  one.hash = run_.hash;
  one.newest = call_count_;
  ++one.calls;
  run_.counted = true;
  run_.parameters.clear();
  if (calls_.size() < most_kept_) calls_.push_back({run_.last_op + 1, optimizer});
  ++call_count_;
  if (!sure_) {
    if (work_.size() == kMostWork) work_.erase(work_.begin(), work_.begin() + kMostWork / 2);
    work_.push_back({std::exchange(work_hash_, 0), optimizer});
    sure_ = is_sure();
  }
  if (!sure_) return;
  work_ = {};
  waiting_ = {};
  whole_ = optimizers_[chosen()].calls;
}

// Returns the optimizer that made a call; adds one if none of the known ones did. A known optimizer made it if it wrote
// more than half of this call's parameters in earlier calls. The number of these parameters must also be more than half
// of what its newest call wrote. The sets need not be equal: a call can leave parameters out, such as those of experts
// that no token went to.
std::uint32_t OptimizerCalls::whose(std::vector<std::uint64_t>& parameters) {
  std::ranges::sort(parameters);
  parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
  std::vector<std::uint64_t> votes(optimizers_.size());
  for (const std::uint64_t id : parameters) {
    const auto found = parameters_.find(id);
    if (found == parameters_.end()) continue;
    for (const std::uint32_t optimizer : found->second.of) ++votes[optimizer];
  }
  const auto most = std::ranges::max_element(votes);
  auto optimizer = std::uint32_t(most - votes.begin());
  const bool same =
      most != votes.end() && *most * 2 > std::max<std::uint64_t>(parameters.size(), optimizers_[optimizer].parameters);
  // If the trace began in the midst of a call, the first call shows only some of its parameters. The second call is the
  // same optimizer's if it writes all of these.
  const bool rest_of_first = in_midst_ && call_count_ == 1 && *most == optimizers_[0].parameters;
  if (!same && !rest_of_first && optimizers_.size() < kMostOptimizers) {
    optimizer = std::uint32_t(optimizers_.size());
    optimizers_.emplace_back();
  }
  for (const std::uint64_t id : parameters) {
    const auto found = parameters_.find(id);
    if (found == parameters_.end()) continue;
    std::vector<std::uint32_t>& of = found->second.of;
    if (of.size() < kMostOptimizersOfOne && std::ranges::find(of, optimizer) == of.end()) of.push_back(optimizer);
  }
  return optimizer;
}

std::size_t OptimizerCalls::chosen() const {
  std::vector<std::uint64_t> counts;
  for (const Optimizer& one : optimizers_) counts.push_back(one.calls);
  return rarest_call(counts);
}

bool OptimizerCalls::is_sure() {
  const std::size_t ends_steps = chosen();
  const bool all_twice = std::ranges::all_of(
      optimizers_, [&](const Optimizer& one) { return one.calls > 1 || call_count_ - one.newest > kPatience; });
  if (!all_twice || optimizers_[ends_steps].calls < 2 || !all_were_updated()) return false;
  return optimizers_[ends_steps].calls >= kPatience || came_again(ends_steps);
}

bool OptimizerCalls::all_were_updated() {
  std::erase_if(waiting_, [&](std::uint64_t id) {
    Parameter& one = parameters_[id];
    return one.updated || runs_ - one.first >= kPatience;
  });
  return waiting_.empty();
}

bool OptimizerCalls::came_again(std::size_t chosen) const {
  std::unordered_set<std::uint64_t> steps;
  std::uint64_t hash = 0;
  for (const Work& one : work_) {
    hash = mix(hash, one.hash);
    if (one.optimizer != chosen) continue;
    if (!steps.insert(std::exchange(hash, 0)).second) return true;
  }
  return false;
}

std::vector<std::uint64_t> OptimizerCalls::ends() const {
  std::vector<std::uint64_t> ends;
  if (none()) return ends;
  const std::size_t ends_steps = chosen();
  for (const Call& one : calls_) {
    if (one.optimizer == ends_steps) ends.push_back(one.end_op);
  }
  return ends;
}

}  // namespace ullage::trace
