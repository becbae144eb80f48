// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a file that stands for dropped events. The recorder drops events from the middle of a long take, to keep
// its own memory bounded (event_log.h). The part has what later events need: which storages were born and died, and
// which ops ended.

#include "ullage/trace/file/packed.h"
#include "ullage/trace/file/packed_events.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ullage::trace {

// Ids are those of the whole recording, not of the take.
struct GapPart {
  struct Born {
    std::uint64_t storage = 0, bytes = 0;
  };
  struct Ended {
    std::uint64_t op = 0, took_ns = 0;
  };
  Position end;                     // the position at which the next chunk begins
  std::uint64_t events = 0;         // number of lost events
  std::vector<Born> born;           // in the gap, and alive after it; ascending
  std::vector<std::uint64_t> died;  // in the gap, born before it
  std::vector<Ended> ended;         // in the gap, begun before it
  PackedBytes records;              // roles, borders, charges; their ids are packed relative to `end`
};

// `begin` is the position at which the chunk before ended.
void append_gap(PackedBytes& out, const Position& begin, const GapPart& gap);

// Checks all ids, except those in `records`. Returns null, or what is wrong. Sets `at` to the number of bytes read,
// which is where it is wrong.
const char* read_gap(std::span<const std::byte> bytes, const Position& begin, GapPart& gap, std::size_t& at);

}  // namespace ullage::trace
