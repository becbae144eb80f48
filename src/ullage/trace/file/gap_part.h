// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a file that stands for events that were lost: what they left behind.

#include "ullage/trace/file/packed.h"
#include "ullage/trace/file/packed_events.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ullage::trace {

struct GapPart {
  struct Born {
    std::uint64_t storage = 0, bytes = 0;
  };
  struct Ended {
    std::uint64_t op = 0, took_ns = 0;
  };
  Position end;                     // where the next chunk begins
  std::uint64_t events = 0;         // lost
  std::vector<Born> born;           // in it, and alive behind it; ascending
  std::vector<std::uint64_t> died;  // in it, born before
  std::vector<Ended> ended;         // in it, begun before
  PackedBytes records;              // what is no event: roles, borders, charges; ids seen from `end`
};

// `begin` is where the chunk before ended.
void append_gap(PackedBytes& out, const Position& begin, const GapPart& gap);

// Every id is checked to be where it must be. Null, or what is wrong; `at` is the byte where.
const char* read_gap(std::span<const std::byte> bytes, const Position& begin, GapPart& gap, std::size_t& at);

}  // namespace ullage::trace
