// SPDX-License-Identifier: Apache-2.0
// Finds memory that a program leaves behind in step after step (growth() in steps.h). The storages of each stack are
// looked at separately. Edit this if growth is reported where there is none, or is overlooked.
#include "ullage/trace/meaning/steps.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace ullage::trace {
namespace {

// A growth happens in at least this many steps. The first step never counts, so the trace must have one more.
constexpr std::uint64_t kLeastSteps = 3;

// What one stack's storages changed in one step, in bytes.
struct Change {
  StackId stack;
  std::uint64_t step = 0;
  std::uint64_t more = 0;  // allocated in this step, and alive at the end of the next
  std::uint64_t less = 0;  // counted in `more` of an earlier step, and freed in this one
  bool sure = true;  // false in the last whole step, because nothing shows whether its storages outlive the next step
};

// The step of each event (index: EventId); one more item stands for the end of the trace.
std::vector<std::uint32_t> step_of_events(const Trace& trace, const Steps& steps) {
  std::vector<std::uint32_t> step(trace.events.size() + 1);
  for (std::size_t i = 0; i < steps.begins.size(); ++i) {
    const EventId from = steps.begins[i], to = i + 1 < steps.begins.size() ? steps.begins[i + 1] : trace.end();
    ULLAGE_CHECK(from < to && to <= trace.end(), "steps of another trace");
    std::fill(step.begin() + std::ptrdiff_t(from.value), step.begin() + std::ptrdiff_t(to.value), std::uint32_t(i));
  }
  step.back() = std::uint32_t(steps.begins.size());
  return step;
}

// The changes in the order of (stack, step), summed up for each such pair.
std::vector<Change> changes(const Trace& trace, const Steps& steps) {
  const std::vector<std::uint32_t> step = step_of_events(trace, steps);
  const std::uint64_t whole = steps.whole();
  std::vector<Change> all;
  for (const Storage& one : trace.storages) {
    if (one.from_before) continue;
    const std::uint64_t born = step[one.born.value], died = step[one.died.value];
    const bool last = born + 1 == whole;
    const bool outlives_next = last ? one.died >= trace.end() : died > born + 1;
    if (born == 0 || born >= whole || !outlives_next) continue;
    all.push_back({one.stack, born, one.bytes.count, 0, !last});
    if (died < whole) all.push_back({one.stack, died, 0, one.bytes.count, true});
  }
  std::ranges::sort(all, {}, [](const Change& one) { return std::tuple(one.stack, one.step); });
  std::vector<Change> sums;
  for (const Change& one : all) {
    if (sums.empty() || sums.back().stack != one.stack || sums.back().step != one.step) {
      sums.push_back(one);
    } else {
      sums.back().more += one.more;
      sums.back().less += one.less;
      sums.back().sure &= one.sure;
    }
  }
  return sums;
}

// The changes of one stack, from a step in which its bytes grew to the step in which it gave bytes back, or to the end.
struct Window {
  std::vector<std::uint64_t> grew;   // bytes in each step in which it grew
  std::uint64_t sure = 0;            // how many of these are sure, see Change
  std::uint64_t first = 0, end = 0;  // its steps are [first, end)
};

// One step of kLeastSteps may be unsure (Change::sure).
bool is_growth(const Window& window) {
  return window.grew.size() >= kLeastSteps && window.sure + 1 >= kLeastSteps &&
         window.grew.size() * 2 >= window.end - window.first;
}

Growth growth_of(StackId stack, Window window, const std::vector<StackMeaning>& meanings) {
  Growth growth{stack, meanings[stack.value].name, {}, window.grew.size(), window.end - window.first, {}};
  for (const std::uint64_t bytes : window.grew) growth.total += Bytes{bytes};
  const auto middle = window.grew.begin() + std::ptrdiff_t(window.grew.size() / 2);
  std::ranges::nth_element(window.grew, middle);
  growth.per_step = Bytes{*middle};
  return growth;
}

// Adds the largest growth of one stack, if any of its windows is a growth.
void add_growth(std::span<const Change> changes, std::uint64_t whole, const std::vector<StackMeaning>& meanings,
                std::vector<Growth>& found) {
  std::optional<Growth> largest;
  Window window;
  const auto close = [&](std::uint64_t end) {
    window.end = end;
    if (is_growth(window)) {
      Growth one = growth_of(changes.front().stack, window, meanings);
      if (!largest || one.total > largest->total) largest = std::move(one);
    }
    window = {};
  };
  for (const Change& one : changes) {
    if (one.less > one.more) {
      close(one.step);
    } else if (one.more > one.less) {
      if (window.grew.empty()) window.first = one.step;
      window.grew.push_back(one.more - one.less);
      window.sure += one.sure;
    }
  }
  close(whole);
  if (largest) found.push_back(std::move(*largest));
}

}  // namespace

std::vector<Growth> growth(const Trace& trace, const Steps& steps, const std::vector<StackMeaning>& meanings) {
  std::vector<Growth> found;
  if (steps.whole() <= kLeastSteps) return found;
  const std::vector<Change> all = changes(trace, steps);
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(), [&](const Change& one) { return one.stack != begin->stack; });
    ULLAGE_CHECK(begin->stack.value < meanings.size(), "meanings of other stacks");
    add_growth(std::span(begin, end), steps.whole(), meanings, found);
    begin = end;
  }
  std::ranges::sort(
      found, [](const Growth& a, const Growth& b) { return std::tie(b.total, a.stack) < std::tie(a.total, b.stack); });
  return found;
}

}  // namespace ullage::trace
