// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_meaning.h"

#include "ullage/trace/take/take_categories.h"
#include "ullage/trace/take/take_index.h"
#include "ullage/trace/take/take_names.h"
#include "ullage/trace/take/take_phases.h"
#include "ullage/trace/take/take_steps.h"

#include <array>
#include <string>
#include <unordered_map>
#include <utility>

namespace ullage::trace {
namespace {

// Makes one stack for each combination of name, phase and category.
class StackWriter final {
 public:
  StackWriter(const TakeNames& names, TakeMeaning& meaning) : names_(names), meaning_(meaning) {
    meaning_.meanings.assign(
        1, {Category::Unattributed, Phase::Unknown, "not known", std::nullopt, true, true, {}, false, false});
  }

  StackId stack(std::uint32_t name, Phase phase, Category category) {
    const std::uint64_t key = (std::uint64_t(name) * 16 + std::uint64_t(phase)) * 16 + std::uint64_t(category);
    const auto [found, is_new] = stacks_.try_emplace(key);
    if (!is_new) return found->second;
    const TakeNames::Name& words = names_.names[name];
    std::vector<FrameId> frames{add(words.op)};
    if (!words.place.empty()) frames.push_back(add(words.place));
    frames.push_back(add(trace::name(phase)));
    frames.push_back(add(trace::name(category)));
    found->second = meaning_.stacks.add(frames);
    const std::string text = words.place.empty() ? words.op : words.op + " " + words.place;
    if (found->second.value == meaning_.meanings.size()) {
      meaning_.meanings.push_back({category, phase, text, std::nullopt, true, true, {}});
    }
    return found->second;
  }

 private:
  FrameId add(std::string_view text) { return meaning_.stacks.add(Frame{"??", std::string(text), 0}); }

  const TakeNames& names_;
  TakeMeaning& meaning_;
  std::unordered_map<std::uint64_t, StackId> stacks_;
};

void write_stacks(Take& take, const TakeIndex& index, const TakeNames& names, TakeMeaning& meaning) {
  StackWriter writer(names, meaning);
  Trace& trace = take.trace;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Phase phase = meaning.op_phases[i];
    trace.ops[i].stack = writer.stack(names.ops[i], phase, Category::Temporaries);
  }
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    Storage& one = trace.storages[i];
    const Category category = meaning.categories[i];
    const bool nobody = one.from_before && category == Category::Unattributed;
    const Phase phase = one.from_before ? Phase::Unknown : meaning.phases[one.born.value];
    one.stack = nobody ? StackId{} : writer.stack(names.storages[i], phase, category);
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    Event& one = trace.events[i];
    if (const auto* born = std::get_if<event::Allocation>(&one.what)) {
      one.stack = trace.storages[born->storage.value].stack;
    } else {
      one.stack = index.open[i] == kNoOp ? StackId{} : trace.ops[index.open[i].value].stack;
    }
  }
}

}  // namespace

TakeMeaning understand(Take& take) {
  const TakeIndex index(take);
  TakeMeaning meaning;
  TakePhases phases = take_phases(index);
  meaning.steps = take_steps(index);
  meaning.categories = take_categories(index, phases, meaning.steps);
  const TakeNames names = take_names(index, phases, meaning.categories);
  meaning.op_phases = std::move(phases.ops);
  meaning.phases = std::move(phases.events);
  write_stacks(take, index, names, meaning);
  return meaning;
}

}  // namespace ullage::trace
