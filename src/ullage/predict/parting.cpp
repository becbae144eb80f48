// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/parting.h"

#include "ullage/predict/event_text.h"

#include <algorithm>
#include <utility>

namespace ullage::predict {
namespace {

// Do all takes have this op, with equally many tensors of equal ranks?
bool in_common(const trace::TraceFile& file, std::size_t op) {
  const trace::OpDetail& first = file.takes[0].details[op];
  const auto same_rank = [](const trace::TensorUse& a, const trace::TensorUse& b) {
    return a.sizes.size() == b.sizes.size();
  };
  return std::ranges::all_of(file.takes, [&](const trace::Take& take) {
    return op < take.details.size() && take.trace.ops[op].name == file.takes[0].trace.ops[op].name &&
           std::ranges::equal(take.details[op].uses, first.uses, same_rank);
  });
}

// The op at the target. It has no tensors if one of their sizes follows no law.
trace::OpDetail evaluated(const trace::TraceFile& file, const Sequence& sequence, const Evaluator& law,
                          std::size_t op) {
  trace::OpDetail detail = file.takes[0].details[op];
  std::vector<std::int64_t> counts(sequence.order.size());
  for (std::size_t use = 0; use < detail.uses.size(); ++use) {
    for (std::size_t axis = 0; axis < detail.uses[use].sizes.size(); ++axis) {
      for (std::size_t place = 0; place < counts.size(); ++place) {
        counts[place] = file.takes[sequence.order[place]].details[op].uses[use].sizes[axis];
      }
      const std::optional<std::int64_t> size = law(counts);
      if (!size) {
        detail.uses.clear();
        return detail;
      }
      detail.uses[use].sizes[axis] = *size;
    }
  }
  return detail;
}

std::string text(const Crossing& crossing) {
  const auto count = [](std::int64_t n) { return count_text(std::uint64_t(std::max<std::int64_t>(n, 0))); };
  const std::string takes =
      crossing.least == crossing.most ? count(crossing.least) : count(crossing.least) + " to " + count(crossing.most);
  return crossing.op + ": " + crossing.rule + "; the figure that decides is " + takes + " at the sizes tried, " +
         count(crossing.target) + " at the size asked for";
}

std::string text(const trace::TraceFile& file, const Difference& difference) {
  if (difference.there.empty() || difference.here == difference.there) return difference.here;
  return "the program does not do the same at all sizes tried: at " + knobs_text(file.takes[0].knobs) + " " +
         difference.here + "; at " + knobs_text(file.takes[difference.take].knobs) + " " + difference.there;
}

}  // namespace

std::vector<Crossing> crossings_until(const trace::TraceFile& file, const Sequence& sequence, EventId until,
                                      const std::vector<Knob>& at) {
  const Evaluator law(sequence.grid, sequence.grid.values_of(at));
  const trace::Take& first = file.takes[0];
  trace::Take target;
  target.process.threads = first.process.threads;
  for (std::size_t op = 0; op < first.details.size() && first.details[op].begin <= until; ++op) {
    if (!in_common(file, op)) break;
    target.trace.ops.push_back(first.trace.ops[op]);
    target.details.push_back(evaluated(file, sequence, law, op));
  }
  return crossings(file, sequence, target);
}

NeedsTakes needs_takes(const trace::TraceFile& file, const Sequence& sequence, const Difference& difference,
                       const std::vector<Knob>& at) {
  NeedsTakes found;
  found.why = text(file, difference);
  const std::vector<Crossing> crossed = crossings_until(file, sequence, difference.event, at);
  // The last crossing before the difference is the most likely reason.
  if (!crossed.empty()) found.why += " (" + text(crossed.back()) + ")";
  found.other = other_sizes(file, sequence, crossed, at);
  return found;
}

NeedsTakes needs_takes(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Crossing>& crossings,
                       const std::vector<Knob>& at) {
  NeedsTakes found;
  found.why = text(crossings.front());
  found.other = other_sizes(file, sequence, crossings, at);
  return found;
}

}  // namespace ullage::predict
