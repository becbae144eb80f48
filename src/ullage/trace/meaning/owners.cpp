// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/owners.h"

#include "ullage/base/check.h"
#include "ullage/trace/meaning/owner_names.h"
#include "ullage/trace/meaning/owner_rules.h"

#include <algorithm>
#include <bitset>

namespace ullage::trace {
namespace {

using RuleSet = std::bitset<192>;

// The table's entry for one frame, independent of the frame's place in a stack.
struct FrameRules {
  RuleSet rules;            // matching rules, without Root and Weak ones
  RuleSet as_root;          // matching Root rules: they apply if it is the outermost Python frame
  RuleSet weak;             // matching Weak rules: they apply if no other gives the phase
  Phase phase{};            // of the first row in `rules` that has one
  Phase root_phase{};       // of the first row in `as_root` that has one
  bool python = false;      // not C++
  bool silent = false;      // no row matches
  bool is_step = false;     // a call of an optimizer's step
  bool is_module = false;   // torch's own frame around a module's forward; some stacks lack it
  bool is_forward = false;  // a function named forward
  bool is_cast = false;     // autocast's cast of an argument
  bool is_exit = false;     // autocast's end
};

Phase first_phase(const RuleSet& rules) {
  const auto table = owner_rules();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (rules[i] && table[i].phase != Phase::Unknown) return table[i].phase;
  }
  return Phase::Unknown;
}

FrameRules look_up(const Frame& frame) {
  FrameRules found;
  found.python = is_python(frame);
  const bool own = is_own(frame);
  std::string path = frame.file;
  std::ranges::replace(path, '\\', '/');
  std::string_view function = frame.function;
  // From Python 3.11 on, frames have qualified names: "Module._call_impl".
  if (found.python) function.remove_prefix(function.rfind('.') + 1);  // npos + 1 is 0
  const auto table = owner_rules();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const OwnerRule& rule = table[i];
    const bool native = rule.frames == OwnerRule::Frames::Native || rule.frames == OwnerRule::Frames::Weak;
    if (native == found.python || (rule.frames == OwnerRule::Frames::Own && !own)) continue;
    if (!matches(rule, native ? std::string_view() : path, function)) continue;
    RuleSet& set = rule.frames == OwnerRule::Frames::Root   ? found.as_root
                   : rule.frames == OwnerRule::Frames::Weak ? found.weak
                                                            : found.rules;
    set.set(i);
  }
  found.phase = first_phase(found.rules);
  found.root_phase = first_phase(found.as_root);
  found.silent = found.rules.none() && found.as_root.none() && found.weak.none();
  found.is_module =
      found.python && path.find("torch/nn/modules/module.py") != path.npos && function.ends_with("_call_impl");
  found.is_forward = found.python && function == "forward";
  // aten/src/ATen/autocast_mode.cpp, torch/amp/autocast_mode.py
  found.is_cast = !found.python && frame.function.starts_with("at::autocast::cached_cast");
  found.is_exit = frame.function.starts_with("at::autocast::clear_cache") ||
                  (found.python && function == "__exit__" && path.find("amp/autocast_mode.py") != path.npos);
  found.is_step = found.phase == Phase::Optimizer && (function == "step" || function == "wrapper");
  return found;
}

// Decides the phase of a stack with frames of several phases. The innermost one wins, because a closure that an
// optimizer's step calls runs the forward pass. But a forward pass that the backward pass recomputes is backward, and
// one that the compiler or an evaluation runs belongs to these.
class PhaseVote final {
 public:
  void add(Phase phase) {  // innermost first
    if (phase == Phase::Unknown) return;
    if (first_ == Phase::Unknown) first_ = phase;
    seen_.set(std::size_t(phase));
  }
  Phase result() const {
    if (first_ == Phase::Unknown || first_ == Phase::Optimizer || first_ == Phase::Compiling) return first_;
    for (const Phase wider : {Phase::Compiling, Phase::Backward, Phase::Evaluation}) {
      if (seen_[std::size_t(wider)]) return wider;
    }
    return first_;
  }

 private:
  Phase first_ = Phase::Unknown;
  std::bitset<8> seen_;
};

class OwnerReader final {
 public:
  explicit OwnerReader(const Stacks& stacks) : stacks_(stacks), names_(stacks) {
    static_assert(RuleSet().size() >= 128);
    ULLAGE_CHECK(owner_rules().size() <= RuleSet().size(), "more rules than a set of them holds");
    frames_.reserve(stacks.frame_count());
    for (std::uint32_t i = 0; i < stacks.frame_count(); ++i) frames_.push_back(look_up(stacks.frame({i})));
  }

  StackMeaning meaning(StackId id) const {
    const std::span<const FrameId> stack = stacks_.frames(id);
    StackMeaning meaning{
        Category::Unattributed, Phase::Unknown, "no stack recorded", std::nullopt, false, false, {}, false, false};
    if (stack.empty()) return meaning;
    PhaseVote vote;
    RuleSet rules, weak;
    std::size_t root = stack.size(), outermost_optimizer = stack.size();
    for (std::size_t i = 0; i < stack.size(); ++i) {
      const FrameRules& frame = frames_[stack[i].value];
      meaning.native |= !frame.python;
      meaning.autocast_cast |= frame.is_cast;
      meaning.autocast_exit |= frame.is_exit;
      if (frame.python) root = i;
      if (frame.silent) continue;
      rules |= frame.rules;
      weak |= frame.weak;
      vote.add(frame.phase);
      if (frame.phase == Phase::Optimizer) outermost_optimizer = i;
    }
    if (root < stack.size()) {
      rules |= frames_[stack[root].value].as_root;
      vote.add(frames_[stack[root].value].root_phase);
    }
    meaning.phase = vote.result();
    if (meaning.phase == Phase::Unknown) {
      meaning.phase = first_phase(weak);
      rules |= weak;
    }
    meaning.name = std::string(take_category(rules, meaning));
    // An evaluation moves its batches too, outside of the model.
    meaning.module_calls = module_calls(stack);
    if (meaning.phase == Phase::Evaluation && meaning.module_calls.empty() && weak.any())
      meaning.category = Category::Inputs;
    if (meaning.name.empty()) meaning.name = names_.name(stack);
    if (outermost_optimizer < stack.size()) meaning.step_call = caller_of_step(stack, outermost_optimizer);
    return meaning;
  }

 private:
  // Sets the category. Returns the name that the rule gives, or an empty one.
  static std::string_view take_category(const RuleSet& rules, StackMeaning& meaning) {
    const auto table = owner_rules();
    for (std::size_t i = 0; i < table.size() && rules.any(); ++i) {
      if (!rules[i] || !table[i].category) continue;
      if (table[i].phase != Phase::Unknown && table[i].phase != meaning.phase) continue;
      meaning.category = *table[i].category;
      return table[i].name;
    }
    if (meaning.phase == Phase::Backward || meaning.phase == Phase::Optimizer) meaning.category = Category::Temporaries;
    if (meaning.phase == Phase::Forward || meaning.phase == Phase::Evaluation) meaning.category = Category::Activations;
    return {};
  }

  std::vector<std::uint64_t> module_calls(std::span<const FrameId> stack) const {
    std::vector<std::uint64_t> calls;
    std::uint64_t hash = 0;
    bool called = false;
    for (auto id = stack.rbegin(); id != stack.rend(); ++id) {
      const FrameRules& frame = frames_[id->value];
      called |= frame.is_module;
      if (!frame.python || frame.is_module) continue;
      called |= frame.is_forward;
      if (called) calls.push_back(hash);
      hash = (hash ^ id->value) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
      hash ^= hash >> 29;
      if (called) calls.push_back(hash);
      called = false;
    }
    return calls;
  }

  std::optional<FrameId> caller_of_step(std::span<const FrameId> stack, std::size_t optimizer) const {
    if (!frames_[stack[optimizer].value].is_step) return std::nullopt;
    for (std::size_t i = optimizer + 1; i < stack.size(); ++i) {
      if (frames_[stack[i].value].python) return stack[i];
    }
    return std::nullopt;
  }

  const Stacks& stacks_;
  const OwnerNames names_;
  std::vector<FrameRules> frames_;  // by FrameId
};

}  // namespace

std::string_view name(Category category) {
  switch (category) {
    case Category::Parameters:
      return "parameters";
    case Category::Gradients:
      return "gradients";
    case Category::OptimizerState:
      return "optimizer state";
    case Category::Buffers:
      return "buffers";
    case Category::Activations:
      return "activations";
    case Category::Inputs:
      return "inputs";
    case Category::Temporaries:
      return "temporaries";
    case Category::Workspace:
      return "workspace";
    case Category::Library:
      return "library workspaces";
    case Category::Unattributed:
      return "unattributed";
    case Category::WeightCopies:
      return "weight copies";
  }
  return "unattributed";
}

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::Unknown:
      return "unknown";
    case Phase::Loading:
      return "loading";
    case Phase::Forward:
      return "forward";
    case Phase::Backward:
      return "backward";
    case Phase::Optimizer:
      return "optimizer";
    case Phase::Evaluation:
      return "evaluation";
    case Phase::Compiling:
      return "compiling";
  }
  return "unknown";
}

std::vector<StackMeaning> meanings(const Stacks& stacks) {
  const OwnerReader reader(stacks);
  std::vector<StackMeaning> meanings;
  meanings.reserve(stacks.stack_count());
  for (std::uint32_t i = 0; i < stacks.stack_count(); ++i) meanings.push_back(reader.meaning({i}));
  return meanings;
}

}  // namespace ullage::trace
