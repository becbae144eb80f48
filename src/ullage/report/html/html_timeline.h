// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the page's timeline and its view of the segments are drawn from: the curve of live bytes as stacked owners at
// some thousand moments (every extremum among them), the storages and the ranges of reserved addresses with the time
// they were there. Small enough to stand in a page for a history of any length.
//
//   moment     0        1        2   ...   n        moment m is after event m - 1; 0 is before the first event
//   event          0        1        ...  n-1
//   a storage or range is there in [from, to); to = n + 1: at the end too

#include "ullage/report/input_history.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

struct TimelineOwner {
  std::string name;
  trace::Category category = trace::Category::Unattributed;
  trace::StackId stack;  // of its largest storage
  Bytes most;            // its own highest level
};

struct PlacedStorage {
  std::uint64_t from = 0, to = 0;  // moments
  Address address;
  Bytes bytes;
  std::optional<std::uint32_t> owner;  // index of Timeline::owners; none: one beyond those listed
};

// A segment, or the mapped part of an expandable one.
struct PlacedRange {
  std::uint64_t from = 0, to = 0;  // moments
  Address address;
  Bytes bytes;
};

struct Strip {                     // a phase of the program
  std::uint64_t from = 0, to = 0;  // moments
  std::string name;
};

struct RefusedRequest {
  std::uint64_t moment = 0;
  Bytes requested;
};

struct Timeline {
  std::uint64_t events = 0;
  std::vector<std::uint64_t> moments;  // ascending, from 0 to `events`
  std::vector<std::int64_t> times;     // microseconds since the first event's; as moments, or empty: not recorded
  std::vector<TimelineOwner> owners;   // the first `stacked` have a column each; by importance
  std::size_t stacked = 0;
  std::vector<std::vector<Bytes>> levels;  // [column][as moments]; one more column than `stacked` for all the others
  std::vector<Bytes> reserved;             // as moments
  std::uint64_t peak = 0;                  // the moment of it; in `moments`
  std::uint64_t shown = 0;                 // the moment that the diagnosis is about; in `moments`
  std::vector<RefusedRequest> refused;     // each in `moments`
  std::vector<PlacedStorage> storages;     // by `from`
  std::uint64_t storages_left_out = 0;     // the smallest, of histories with very many; none at `shown` and `peak`
  std::vector<PlacedRange> ranges;         // empty: the file does not say them
  std::vector<Strip> strips;               // by `from`
  std::vector<std::uint64_t> steps;        // moments at which a step begins
  std::vector<std::string> ops;            // names, each once; empty: not recorded
  std::vector<std::int64_t> op_at;         // as moments: index of `ops`, -1: none was running; or empty
  bool has_pool = true;                    // false: reserved bytes and addresses mean nothing
};

// `levels` are those of its trace. `shown` is the event that the diagnosis is about; none: the peak. The columns of a
// moment add up to the live bytes of that moment.
Timeline make_timeline(const InputHistory& history, const trace::Levels& levels, std::optional<EventId> shown);

// Its parts, each in a source of its own (html_<part>.cpp).

// Ascending moments, the first and the last among them and all of `wanted`, so that a curve through them loses no peak
// and no valley. Up to 6,000 events give every moment; a longer history is cut into 1,500 equal stretches, of which
// each gives its ends, its lowest and its highest live level and its highest reserved level.
std::vector<std::uint64_t> sample_moments(const trace::Levels& levels, std::vector<std::uint64_t> wanted);
// Which addresses the pool held when: segments over time, from the events and from the segments at the end. What is
// there at the end, or given back, without having been taken in the events was there before the first one. Never fails:
// a range taken twice counts once.
std::vector<PlacedRange> reserved_ranges(const trace::Trace& trace, const trace::DeviceRecording& recorded);
// The strip below the timeline: phases as the file's annotations or the program itself name them, else as they are
// understood; at most some hundred, the longest. Fills `strips` and `steps`.
void add_strips(const InputHistory& history, Timeline& timeline);
// Which op was running at each moment. Fills `ops` and `op_at`; leaves them empty where no ops were recorded.
void add_ops(const InputHistory& history, Timeline& timeline);

// Compact JSON that can stand in a page's script element: no '<' in it. Frames are those of `stacks`.
std::string to_json(const Timeline& timeline, const trace::Stacks& stacks);

}  // namespace ullage::report
