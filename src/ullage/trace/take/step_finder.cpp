// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/step_finder.h"

#include "ullage/trace/meaning/period.h"

#include <algorithm>

namespace ullage::trace {
namespace {

constexpr std::uint64_t kFirstLook = 64;  // ops
// A loop without an optimizer must have this many turns before its turns count as steps. If leaves require grad, more
// turns are needed, because the loop can be an evaluation before the training. If there are backward passes, still more
// are needed, because the loop can be gradient accumulation before the first update.
constexpr std::uint64_t kTurnsOfInference = 3;
constexpr std::uint64_t kTurnsWithParameters = 12;
constexpr std::uint64_t kTurnsWithBackward = 128;

}  // namespace

StepFinder::StepFinder(std::uint64_t most_kept) : most_kept_(most_kept), calls_(most_kept), next_look_(kFirstLook) {}

void StepFinder::op(std::uint64_t token, Kind kind, std::uint64_t level, StorageId parameter) {
  const std::uint64_t ordinal = ops_++;
  any_backward_ |= kind == Kind::Backward;
  if (kind == Kind::Update) {
    calls_.update(ordinal, token, parameter);
  } else if (kind == Kind::Backward) {
    calls_.backward(token);
  } else {
    calls_.other();
  }
  if (!needs_turns()) {
    tokens_ = {};
    levels_ = {};
  } else if (tokens_.size() < most_kept_) {
    tokens_.push_back(token);
    levels_.push_back(level);
  }
}

void StepFinder::also_writes(StorageId parameter) { calls_.update(ops_ - 1, 0, parameter); }

void StepFinder::parameter_used(StorageId parameter, bool followed) {
  any_parameter_ = true;
  if (calls_.parameter_used(parameter, followed)) return forget_turns();
  // An op on another parameter counts as another op. So the layers of one pass are not equal turns.
  const bool is_kept = !tokens_.empty() && first_kept_ + tokens_.size() == ops_;
  if (is_kept) tokens_.back() = (tokens_.back() ^ parameter.value) * 0x9e3779b97f4a7c15u;
}

// Turns are looked for among the ops that come from now on.
void StepFinder::forget_turns() {
  tokens_.clear();
  levels_.clear();
  first_kept_ = ops_;
  next_look_ = kFirstLook;
}

void StepFinder::optimizer_was_called() {
  has_optimizer_ = true;
  tokens_ = {};
  levels_ = {};
}

void StepFinder::step_reported() {
  ++reported_count_;
  if (reported_.size() < most_kept_) reported_.push_back(ops_);
  tokens_ = {};
  levels_ = {};
}

void StepFinder::ended() { calls_.ended(); }

std::vector<std::uint64_t> StepFinder::borders() const {
  std::vector<std::uint64_t> borders{0};
  const auto add = [&](const auto& ends) {
    for (const std::uint64_t end : ends) {
      if (end > borders.back()) borders.push_back(end);
    }
  };
  if (reported_count_ > 0) {
    add(reported_);
  } else if (!calls_.none()) {
    add(calls_.ends());
  } else {
    std::vector<std::size_t> turns = find_turns(tokens_, levels_);
    if (!turns.empty() && begin_level(levels_, turns)) {
      turns.erase(turns.begin());  // the first step begins at 0, with the loading
      for (std::size_t& turn : turns) turn += first_kept_;
      add(turns);
    }
  }
  return borders;
}

void StepFinder::look_for_turns() {
  next_look_ = tokens_.size() + tokens_.size() / 2;
  const std::vector<std::size_t> turns = find_turns(tokens_, levels_);
  const std::uint64_t least = any_backward_    ? kTurnsWithBackward
                              : any_parameter_ ? kTurnsWithParameters
                                               : kTurnsOfInference;
  if (turns.size() >= least && begin_level(levels_, turns)) turned_ = turns.size() - 1;
}

std::uint64_t StepFinder::whole_steps() {
  if (needs_turns() && tokens_.size() >= next_look_) look_for_turns();
  const std::uint64_t now = reported_count_ > 0 ? reported_count_ : calls_.none() ? turned_ : calls_.whole_steps();
  whole_ = std::max(whole_, now);
  return whole_;
}

}  // namespace ullage::trace
