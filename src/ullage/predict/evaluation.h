// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes a take at sizes that were not run, and how certain it is. at() of sequence.h returns the take alone.

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
  std::uint64_t constant = 0;   // storages of the same size in all takes, or that some take never touches
  std::uint64_t following = 0;  // storages whose size follows the knobs
  // Births and deaths whose true order is not known. All births come first here: no order has more bytes live at once.
  std::vector<EventRange> unordered;
  bool charges_bound = false;  // the charges follow no law and are a bound (charges.h)

  bool exact_at(EventId event) const;  // not in a range of unknown order
};

// Evaluates counts at one target. In a phase whose knobs the program limits (Phase's `most` in runtime.h), the target's
// knobs count as the limit if they are above it.
class Target final {
 public:
  Target(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs);

  // Returns the count at the target, with the knobs of the phase that this event of take 0 is in. `counts` are the
  // measured ones, by place in the grid. Nothing if they follow no law.
  std::optional<std::int64_t> count(EventId event, std::span<const std::int64_t> counts);
  // The target's knobs, limited by the phase that the event is in.
  const std::vector<std::int64_t>& knobs(EventId event) const { return sets_[set_at(event)].values; }

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::int64_t>& counts) const;
  };
  struct Set {  // one set of values of the knobs
    std::vector<std::int64_t> values;
    Evaluator evaluator;
    std::unordered_map<std::vector<std::int64_t>, std::optional<std::int64_t>, Hash> known;  // a cache: sizes repeat
  };
  std::size_t set_at(EventId event) const;
  std::size_t set_of(const std::vector<std::int64_t>& values);

  const Grid& grid_;
  std::vector<Set> sets_;              // the first has the target's own values
  std::vector<std::size_t> by_event_;  // index: EventId; value: index of a set. Empty if there is one set for all
};

// Returns take 0 at other values of the knobs, or the first size that follows no law.
std::variant<Evaluation, Difference> evaluate_take(const trace::TraceFile& file, const Sequence& sequence,
                                                   const std::vector<Knob>& knobs);

}  // namespace ullage::predict
