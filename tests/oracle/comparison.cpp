// SPDX-License-Identifier: Apache-2.0
#include "comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ullage::oracle {

namespace {

constexpr std::size_t kAround = 3;  // events shown before and after the first that differs

std::string totals_text(const Totals& totals) {
  return fmt::format("allocated {} peak {} reserved {} peak {} segments {} retries {} shortages {}", totals.allocated,
                     totals.allocated_peak, totals.reserved, totals.reserved_peak, totals.segments, totals.retries,
                     totals.out_of_memory);
}

std::string row(const char* whose, const std::vector<SeenEvent>& events, std::size_t at) {
  return fmt::format("    {:5}  {}\n", whose, at < events.size() ? text(events[at]) : "(none)");
}

}  // namespace

std::string text(const Case& one) {
  return fmt::format(
      "{} seed {} ({} operations, settings \"{}\", {} MiB, fraction {} %, {} streams, events ready at "
      "question {}, {} addresses)",
      one.name, one.seed, one.operations, one.settings.text(), one.device, one.fraction_percent, one.streams,
      one.event_queries, one.first_fit ? "first-fit" : "growing");
}

std::string text(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::Allocate:
      return fmt::format("allocate {} bytes on stream {} as block {}", operation.bytes, operation.stream,
                         operation.block);
    case Operation::Kind::Free:
      return fmt::format("free block {}", operation.block);
    case Operation::Kind::RecordStream:
      return fmt::format("use block {} on stream {}", operation.block, operation.stream);
    case Operation::Kind::EmptyCache:
      return "empty the cache";
  }
  return "?";
}

std::string text(const SeenEvent& event) {
  static constexpr const char* kNames[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                           "segment_free", "segment_map",    "segment_unmap",  "oom"};
  const auto action = static_cast<std::size_t>(event.action);
  const char* name = action < std::size(kNames) ? kNames[action] : "?";
  const char* place = event.action == SeenEvent::Action::OutOfMemory ? "device has left" : "at base +";
  return fmt::format("op {} {} {} bytes {} {:#x} stream {}", event.operation, name, event.bytes, place, event.address,
                     event.stream);
}

std::optional<std::string> difference(const Case& one, const std::vector<Operation>& operations, const Run& real,
                                      const Run& model) {
  const auto [at_real, at_model] = std::ranges::mismatch(real.events, model.events);
  if (at_real == real.events.end() && at_model == model.events.end()) {
    if (real.totals == model.totals) return std::nullopt;
    return fmt::format("{}\n  all {} events are equal, the totals are not\n    real   {}\n    model  {}\n", text(one),
                       real.events.size(), totals_text(real.totals), totals_text(model.totals));
  }
  const auto first = static_cast<std::size_t>(at_real - real.events.begin());
  const auto& having = at_real != real.events.end() ? real.events : model.events;
  const std::uint32_t operation = having[first].operation;
  std::string told = fmt::format("{}\n  first difference at event {}, operation {}: {}\n", text(one), first, operation,
                                 text(operations.at(operation)));
  for (std::size_t i = first < kAround ? 0 : first - kAround; i <= first + kAround; ++i) {
    told += fmt::format("  event {}{}\n", i, i == first ? "  <-- differs" : "");
    told += row("real", real.events, i) + row("model", model.events, i);
  }
  return told;
}

}  // namespace ullage::oracle
