// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/sequence.h"

#include "ullage/predict/comparison.h"
#include "ullage/predict/event_text.h"
#include "ullage/predict/varying_blocks.h"

#include <algorithm>

namespace ullage::predict {
namespace {

// Returns the first take with lost events as a difference, because nobody knows whether those events were the same.
std::optional<Difference> lost_events(const trace::TraceFile& file) {
  for (std::size_t i = 0; i < file.takes.size(); ++i) {
    if (file.takes[i].gaps.empty()) continue;
    const trace::Gap& gap = file.takes[i].gaps.front();
    Difference found;
    found.take = i;
    found.event = gap.at;
    found.here = found.there =
        "the recording at " + knobs_text(file.takes[i].knobs) + " lost " + count_of(gap.events, "event");
    return found;
  }
  return std::nullopt;
}

// Does any size differ between two takes that do the same?
bool sizes_differ(const trace::TraceFile& file, const Sequence& sequence, std::size_t a, std::size_t b) {
  const trace::Take& one = file.takes[a];
  const trace::Take& two = file.takes[b];
  for (std::size_t i = 0; i < sequence.partners[a].size(); ++i) {
    const StorageId x = sequence.partners[a][i], y = sequence.partners[b][i];
    if (x == kNoPartner || y == kNoPartner) continue;
    if (one.trace.storages[x.value].bytes != two.trace.storages[y.value].bytes) return true;
  }
  for (std::size_t op = 0; op < one.details.size(); ++op) {
    for (std::size_t use = 0; use < one.details[op].uses.size(); ++use) {
      if (one.details[op].uses[use].sizes != two.details[op].uses[use].sizes) return true;
    }
  }
  return false;
}

// Returns a knob whose first and last value give the same sizes everywhere; nothing if there is none.
std::optional<std::string> idle_knob(const trace::TraceFile& file, const Sequence& sequence) {
  const std::vector<Grid::Axis>& axes = sequence.grid.axes;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::size_t columns = axes.size() == 2 ? axes[1].values.size() : 1;
    const std::size_t stride = axis == 0 ? columns : 1;
    const std::size_t last = (axes[axis].values.size() - 1) * stride;
    // Compares along the line at the largest value of the other knob, where differences are largest.
    const std::size_t begin = sequence.order.size() - 1 - last;
    if (!sizes_differ(file, sequence, sequence.order[begin], sequence.order[begin + last])) return axes[axis].name;
  }
  return std::nullopt;
}

void merge(std::vector<EventRange>& ranges) {
  std::ranges::sort(ranges, {}, &EventRange::begin);
  std::vector<EventRange> merged;
  for (const EventRange& range : ranges) {
    if (!merged.empty() && range.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  ranges = std::move(merged);
}

std::vector<StorageId> same_ids(const trace::Take& take) {
  std::vector<StorageId> ids(take.trace.storages.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = StorageId{i};
  return ids;
}

}  // namespace

Result<std::variant<Sequence, Difference>> compare(const trace::TraceFile& file) {
  ULLAGE_TRY_VALUE(Sequence arranged, arrange(file));
  using Answer = std::variant<Sequence, Difference>;
  if (const std::optional<Difference> lost = lost_events(file)) return Answer(*lost);
  Sequence& sequence = arranged;
  sequence.left_out = varying_blocks(file, sequence.grid, sequence.order);
  sequence.partners.push_back(same_ids(file.takes[0]));
  for (std::size_t i = 1; i < file.takes.size(); ++i) {
    Comparison comparison(file.takes[0], sequence.left_out[0], file.takes[i], sequence.left_out[i], i);
    if (std::optional<Difference> found = comparison.run()) return Answer(*found);
    sequence.partners.push_back(comparison.partners());
    const std::vector<EventRange>& unordered = comparison.unordered();
    sequence.unordered.insert(sequence.unordered.end(), unordered.begin(), unordered.end());
  }
  merge(sequence.unordered);
  if (const std::optional<std::string> knob = idle_knob(file, sequence)) {
    return Error{Error::Kind::BadArgument,
                 "'" + *knob + "' changes nothing: every size is the same at all its values; does the program use {" +
                     *knob + "} where it is given?",
                 ""};
  }
  return Answer(std::move(sequence));
}

}  // namespace ullage::predict
