// SPDX-License-Identifier: Apache-2.0
#pragma once

// A take at sizes that were not run, with what there is to say of how it was found: at() of sequence.h gives the take.

#include "ullage/predict/law.h"
#include "ullage/predict/sequence.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ullage::predict {

struct Evaluation {
  trace::Take take;
  std::uint64_t constant = 0;   // storages whose size is the same in all takes
  std::uint64_t following = 0;  // the others
  // Births and deaths whose true order is not known: all births come first here, which no order can pass.
  std::vector<EventRange> unordered;
  bool charges_bound = false;  // what the program told by itself follows no law: a bound from the largest seen

  bool exact_at(EventId event) const;  // not in a range of unknown order
};

// Evaluators for one target: the knobs as they are, and as they are in phases that told a most.
class Target final {
 public:
  Target(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs);

  // Of a count that was measured before this event of take 0, by place in the grid.
  std::optional<std::int64_t> count(EventId event, std::span<const std::int64_t> counts);
  // The knobs at the event.
  const std::vector<std::int64_t>& knobs(EventId event) const { return sets_[set_at(event)].values; }

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::int64_t>& counts) const;
  };
  struct Set {  // of knobs
    std::vector<std::int64_t> values;
    Evaluator evaluator;
    std::unordered_map<std::vector<std::int64_t>, std::optional<std::int64_t>, Hash> known;  // sizes repeat
  };
  std::size_t set_at(EventId event) const;
  std::size_t set_of(const std::vector<std::int64_t>& values);

  const Grid& grid_;
  std::vector<Set> sets_;              // the first is the target's own
  std::vector<std::size_t> by_event_;  // index: EventId; index of a set. Empty: one set for all
};

std::variant<Evaluation, Difference> evaluate_take(const trace::TraceFile& file, const Sequence& sequence,
                                                   const std::vector<Knob>& knobs);

}  // namespace ullage::predict
