// SPDX-License-Identifier: Apache-2.0
// The part of TakeReader that reads gaps: what the recorder dropped from the middle of a long take (gap_part.h).
#include "ullage/trace/file/take_reader.h"

#include <string>

namespace ullage::trace {

std::optional<Problem> TakeReader::gap(std::span<const std::byte> content) {
  GapPart gap;
  std::size_t at = 0;
  if (const char* problem = read_gap(content, now_, gap, at)) return Problem{problem, at};
  if (const char* problem = fill_gap(gap)) return Problem{problem, 0};
  return std::nullopt;
}

// Puts everything that the gap says at one event.
const char* TakeReader::fill_gap(const GapPart& gap) {
  if (gap.events > kMost - events_) return "a gap with counts that cannot be";
  events_ += gap.events;
  const EventId now = take_.trace.end();
  for (const std::uint64_t storage : gap.died) {
    if (const char* problem = die(storage)) return problem;
  }
  for (const GapPart::Ended& one : gap.ended) {
    const auto op = known_op(one.op);
    if (!op || take_.details[op->value].end != kNever) return "an op that ends twice";
    if (one.took_ns > kMost) return "a time that cannot be";
    take_.details[op->value].end = now;
    take_.details[op->value].took = Seconds{static_cast<double>(one.took_ns) / 1e9};
  }
  for (const GapPart::Born& one : gap.born) {
    if (const char* problem = add_storage(one.storage, one.bytes, kNoOp, false)) return problem;
  }
  now_ = gap.end;
  if (const char* problem = add_records(gap.records)) return problem;
  take_.gaps.push_back({now, gap.events});
  return add(PackedEvent{});  // the mark
}

const char* TakeReader::add_records(std::span<const std::byte> bytes) {
  EventUnpacker unpacker(now_, bytes);
  PackedEvent record;
  while (unpacker.next(record)) {
    if (is_event(record.kind)) return "an event within a gap";
    if (const char* problem = add(record)) return problem;
  }
  return unpacker.problem();
}

}  // namespace ullage::trace
