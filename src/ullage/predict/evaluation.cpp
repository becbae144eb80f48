// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/evaluation.h"

#include "ullage/base/sizes.h"
#include "ullage/predict/charges.h"
#include "ullage/predict/event_text.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ullage::predict {
namespace {

// Fills in one take, storage by storage and use by use.
class Writer final {
 public:
  Writer(const trace::TraceFile& file, const Sequence& sequence, Target& target, Evaluation& into)
      : file_(file), sequence_(sequence), target_(target), into_(into), counts_(sequence.order.size()) {}

  std::optional<Difference> storages() {
    trace::Trace& trace = into_.take.trace;
    trace.live_before = {};
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
      trace::Storage& storage = trace.storages[i];
      if (sequence_.left_out[0][i]) {
        leave_out(storage);
        continue;
      }
      if (!measure(StorageId{i})) {  // some take never touches the storage, so it keeps the size of take 0
        ++into_.constant;
      } else {
        if (i < sequence_.inputs.size() && sequence_.inputs[i]) counts_ = at_or_above(sequence_.grid, counts_);
        const std::optional<std::int64_t> bytes = target_.count(storage.born, counts_);
        // A parameter outside the pool has no bytes at any size.
        if (!bytes || (*bytes == 0 && !constant())) return off_the_law(storage);
        ++(constant() ? into_.constant : into_.following);
        storage.bytes = Bytes{std::uint64_t(*bytes)};
      }
      if (storage.from_before) trace.live_before += storage.bytes;
    }
    return std::nullopt;
  }

  std::optional<Difference> uses() {
    for (std::size_t op = 0; op < into_.take.details.size(); ++op) {
      trace::OpDetail& detail = into_.take.details[op];
      for (std::size_t use = 0; use < detail.uses.size(); ++use) {
        for (std::size_t axis = 0; axis < detail.uses[use].sizes.size(); ++axis) {
          for (std::size_t place = 0; place < counts_.size(); ++place) {
            counts_[place] = file_.takes[sequence_.order[place]].details[op].uses[use].sizes[axis];
          }
          const trace::Storage& of = into_.take.trace.storages[detail.uses[use].storage.value];
          const std::optional<std::int64_t> size = target_.count(of.from_before ? EventId{} : of.born, counts_);
          if (!size) return off_the_law(OpId{op});
          detail.uses[use].sizes[axis] = *size;
        }
      }
    }
    return std::nullopt;
  }

 private:
  // Turns the birth and the death of the storage into Marks, so that ids and event numbers stay the same.
  void leave_out(trace::Storage& storage) {
    trace::Trace& trace = into_.take.trace;
    trace.events[storage.born.value].what = trace::event::Mark{};
    trace.events[storage.died.value].what = trace::event::Mark{};
    storage.died = storage.tensor_died = storage.born;
  }
  // Fills in `counts_` with the storage's bytes. Returns false if a take has no partner of it.
  bool measure(StorageId id) {
    for (std::size_t place = 0; place < counts_.size(); ++place) {
      const std::size_t take = sequence_.order[place];
      const StorageId partner = sequence_.partners[take][id.value];
      if (partner == kNoPartner) return false;
      counts_[place] = std::int64_t(file_.takes[take].trace.storages[partner.value].bytes.count);
    }
    return true;
  }
  bool constant() const { return std::ranges::adjacent_find(counts_, std::not_equal_to<>()) == counts_.end(); }
  // The counts in the order of the grid. Their knobs are not repeated: the reader knows the sizes that were tried.
  std::string measured(const char* unit) const {
    constexpr std::size_t kShown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(counts_.size(), kShown); ++i) {
      text += (i == 0 ? "" : ", ") + count_text(std::uint64_t(counts_[i]));
    }
    return text + (counts_.size() > kShown ? ", ..." : "") + unit;
  }
  Difference said(EventId event, std::string here) const {
    Difference found;
    found.take = sequence_.order.back();
    found.event = event;
    found.here = std::move(here);
    return found;
  }
  Difference off_the_law(const trace::Storage& storage) const {
    const trace::Take& take = file_.takes[0];
    const std::string what = storage.from_before ? "a storage from before the take" : what_happens(take, storage.born);
    return said(storage.born, what + ", of a size that follows no law: " + measured(" B"));
  }
  Difference off_the_law(OpId op) const {
    const trace::Take& take = file_.takes[0];
    const EventId begin = take.details[op.value].begin;
    return said(begin, what_happens(take, begin) + " with tensors whose sizes follow no law: " + measured(" elements"));
  }

  const trace::TraceFile& file_;
  const Sequence& sequence_;
  Target& target_;
  Evaluation& into_;
  std::vector<std::int64_t> counts_;  // one count in all takes, by place in the grid
};

// Puts all births of the range before all deaths: no other order has more bytes live at once.
void births_first(trace::Trace& trace, EventRange range) {
  const auto at = trace.events.begin();
  std::vector<std::optional<trace::Microseconds>> times;
  for (std::uint64_t i = range.begin.value; i < range.end.value; ++i) times.push_back(trace.events[i].at);
  std::stable_partition(at + std::ptrdiff_t(range.begin.value), at + std::ptrdiff_t(range.end.value),
                        [](const trace::Event& e) { return std::holds_alternative<trace::event::Allocation>(e.what); });
  for (std::uint64_t i = range.begin.value; i < range.end.value; ++i) {
    trace::Event& event = trace.events[i];
    event.at = times[i - range.begin.value];
    if (const auto* born = std::get_if<trace::event::Allocation>(&event.what)) {
      trace.storages[born->storage.value].born = EventId{i};
    } else if (const auto* died = std::get_if<trace::event::Free>(&event.what)) {
      trace.storages[died->storage.value].died = trace.storages[died->storage.value].tensor_died = EventId{i};
    }
  }
}

bool within(const std::vector<EventRange>& ranges, EventId event) {
  return std::ranges::any_of(ranges, [&](const EventRange& r) { return r.begin <= event && event < r.end; });
}

}  // namespace

bool Evaluation::exact_at(EventId event) const { return !within(unordered, event); }

std::variant<Evaluation, Difference> evaluate_take(const trace::TraceFile& file, const Sequence& sequence,
                                                   const std::vector<Knob>& knobs) {
  Evaluation evaluation;
  evaluation.take = file.takes[0];
  Target target(file, sequence, knobs);
  for (Knob& knob : evaluation.take.knobs) {
    knob.value = std::ranges::find(knobs, knob.name, &Knob::name)->value;
  }
  Writer writer(file, sequence, target, evaluation);
  if (auto off = writer.storages()) return *off;
  if (auto off = writer.uses()) return *off;
  evaluation.charges_bound = !write_charges(file, sequence, target, evaluation.take);
  for (const EventRange& range : sequence.unordered) births_first(evaluation.take.trace, range);
  evaluation.unordered = sequence.unordered;
  const std::uint32_t threads = evaluation.take.process.threads;
  evaluation.take.process = {};
  evaluation.take.process.threads = threads;
  return evaluation;
}

std::variant<trace::Take, Difference> at(const trace::TraceFile& file, const Sequence& sequence,
                                         const std::vector<Knob>& knobs) {
  auto evaluated = evaluate_take(file, sequence, knobs);
  if (const auto* off = std::get_if<Difference>(&evaluated)) return *off;
  return std::move(std::get<Evaluation>(evaluated).take);
}

}  // namespace ullage::predict
