// SPDX-License-Identifier: Apache-2.0
// Finds the phase of each event of a recording (phases() in steps.h), from its stack, from annotations and from the
// events before it.
#include "ullage/trace/meaning/steps.h"

#include "ullage/base/check.h"
#include "ullage/trace/meaning/annotated.h"

namespace ullage::trace {
namespace {

struct AnnotationRule {
  std::string_view part;  // of the name
  Phase phase;
};
// If an event lies in annotations of several rows, the last row decides.
constexpr AnnotationRule kAnnotationRules[] = {
    {"enumerate(DataLoader)", Phase::Loading},
    {"Optimizer.zero_grad#", Phase::Optimizer},
    {"Optimizer.step#", Phase::Optimizer},
    {"benchmark (dynamo_timed)", Phase::Compiling},
};

// The phase of each event from annotations, Unknown outside of them. Takes one pass per rule, however many overlap.
std::vector<Phase> annotated_phases(const Trace& trace) {
  std::vector<Phase> phases(trace.events.size(), Phase::Unknown);
  const std::vector<Annotated> ranges = annotated(trace);
  for (const AnnotationRule& rule : kAnnotationRules) {
    std::vector<std::int32_t> opened;  // annotations that begin at this event minus those that end; empty: none
    for (const Annotated& one : ranges) {
      if (one.name.find(rule.part) == one.name.npos) continue;
      opened.resize(phases.size() + 1);
      ++opened[one.begin.value];
      --opened[one.end.value];
    }
    std::int64_t open = 0;
    for (std::size_t i = 0; !opened.empty() && i < phases.size(); ++i) {
      open += opened[i];
      if (open > 0) phases[i] = rule.phase;
    }
  }
  return phases;
}

// Whether stacks were recorded and have Python frames only.
bool knows_python_alone(const Trace& trace, const std::vector<StackMeaning>& meanings) {
  bool any = false;
  for (const Event& one : trace.events) {
    any |= one.stack != StackId{};
    if (meanings[one.stack.value].native) return false;
  }
  return any;
}

// The phase of an event that does not show it, from the event before. Inside an optimizer, the engine or the compiler a
// stack would have their frames. So if the event has a stack without them, the program has left that phase.
Phase inherited(Phase before, StackId stack) {
  const bool would_show = before == Phase::Optimizer || before == Phase::Backward || before == Phase::Compiling;
  return stack != StackId{} && would_show ? Phase::Unknown : before;
}

}  // namespace

std::vector<Phase> phases(const Trace& trace, const std::vector<StackMeaning>& meanings) {
  for (const Event& one : trace.events) {
    ULLAGE_CHECK(one.stack.value < meanings.size(), "meanings of other stacks");
  }
  std::vector<Phase> phases = annotated_phases(trace);
  const bool python_alone = knows_python_alone(trace, meanings);
  Phase before = Phase::Unknown;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Event& one = trace.events[i];
    const Phase own = meanings[one.stack.value].phase;
    if (own != Phase::Unknown) {
      phases[i] = own;
    } else if (python_alone && one.stack == StackId{} && std::holds_alternative<event::Allocation>(one.what)) {
      phases[i] = Phase::Backward;
    } else if (phases[i] == Phase::Unknown) {
      phases[i] = inherited(before, one.stack);
    }
    before = phases[i];
  }
  return phases;
}

}  // namespace ullage::trace
