// SPDX-License-Identifier: Apache-2.0
// arrange(): orders the takes in a grid.
#include "ullage/predict/sequence.h"
#include "ullage/predict/event_text.h"

#include <algorithm>
#include <set>

namespace ullage::predict {
namespace {

constexpr std::size_t kLeastValues = 3;  // two to fit, one to check

Error bad_takes(std::string message) { return {Error::Kind::BadArgument, std::move(message), ""}; }

std::optional<Error> not_comparable(const trace::TraceFile& file) {
  if (file.takes.empty()) return bad_takes("the file has no take; record takes with 'ullage predict --keep FILE'");
  const std::vector<Knob>& names = file.takes[0].knobs;
  if (names.empty())
    return bad_takes("the takes vary no size, so there is nothing to predict from; vary one with --vary");
  if (names.size() > 2) {
    return bad_takes("the takes vary " + std::to_string(names.size()) +
                     " sizes at once, a prediction can follow at most 2; vary fewer");
  }
  for (const trace::Take& take : file.takes) {
    const auto same_name = [](const Knob& a, const Knob& b) { return a.name == b.name; };
    if (!std::ranges::equal(take.knobs, names, same_name)) {
      return bad_takes("one take varies " + knobs_text(names) + ", another one " + knobs_text(take.knobs) +
                       "; vary the same sizes in all of them");
    }
    if (take.end == trace::Take::End::OutOfMemory) {
      return bad_takes("the program ran out of memory at " + knobs_text(take.knobs) +
                       ", a size to predict from; vary smaller sizes");
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Sequence> arrange(const trace::TraceFile& file) {
  if (auto error = not_comparable(file)) return *error;
  Sequence sequence;
  std::vector<std::size_t> knobs;  // index: axis
  for (std::size_t knob = 0; knob < file.takes[0].knobs.size(); ++knob) {
    std::set<std::int64_t> values;
    for (const trace::Take& take : file.takes) values.insert(take.knobs[knob].value);
    const std::string& name = file.takes[0].knobs[knob].name;
    if (values.size() == 1 && file.takes.size() > 1) continue;  // it was not varied, so it is no axis
    if (values.size() < kLeastValues) {
      return bad_takes("'" + name + "' has " + std::to_string(values.size()) + " sizes in the takes; at least " +
                       std::to_string(kLeastValues) + " are needed, two to fit and one to check");
    }
    knobs.push_back(knob);
    sequence.grid.axes.push_back({name, {values.begin(), values.end()}});
  }
  sequence.order.assign(sequence.grid.takes(), SIZE_MAX);
  for (std::size_t i = 0; i < file.takes.size(); ++i) {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < sequence.grid.axes.size(); ++axis) {
      const std::vector<std::int64_t>& values = sequence.grid.axes[axis].values;
      const auto at = std::ranges::lower_bound(values, file.takes[i].knobs[knobs[axis]].value);
      place = place * values.size() + std::size_t(at - values.begin());
    }
    if (sequence.order[place] != SIZE_MAX) {
      return bad_takes("there are two takes at " + knobs_text(file.takes[i].knobs) + "; keep one");
    }
    sequence.order[place] = i;
  }
  if (std::ranges::find(sequence.order, SIZE_MAX) != sequence.order.end()) {
    return bad_takes(std::to_string(file.takes.size()) + " takes are too few: each size of one name with each of the " +
                     "other makes " + std::to_string(sequence.grid.takes()) + "; record the missing ones");
  }
  return sequence;
}

}  // namespace ullage::predict
