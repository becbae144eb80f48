// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data from which a page draws its timeline and its view of the segments. It has the live bytes as stacked owners
// at some thousand moments (sample_moments() chooses them). It also has the storages and the ranges of reserved
// addresses, with the time they existed. It is small enough for a page, however long the history is.
//
//   moment     0        1        2   ...   n        moment m is after event m - 1; 0 is before the first event
//   event          0        1        ...  n-1
//   a storage or range exists in [from, to); to = n + 1: also at the end

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
  trace::StackId stack;  // the stack of its largest storage
  Bytes most;            // its highest level
};

struct PlacedStorage {
  std::uint64_t from = 0, to = 0;  // moments
  Address address;
  Bytes bytes;
  std::optional<std::uint32_t> owner;  // index in Timeline::owners; none: an owner that is not listed
  trace::StackId stack;                // where it was made
};

// A segment, or the mapped part of an expandable segment.
struct PlacedRange {
  std::uint64_t from = 0, to = 0;  // moments
  Address address;
  Bytes bytes;
};

struct Strip {                     // a phase of the program
  std::uint64_t from = 0, to = 0;  // moments
  std::string name;
  bool own = false;  // the program named it itself; else it was deduced
};

struct RefusedRequest {
  std::uint64_t moment = 0;
  Bytes requested;
};

struct Timeline {
  std::uint64_t events = 0;
  std::vector<std::uint64_t> moments;  // ascending, from 0 to `events`
  std::vector<std::int64_t> times;     // for each moment, microseconds since the first event; empty: not recorded
  // At most 300. The first `stacked` are the most important and have a column each, those that rarely change first. The
  // rest follows by importance: the bytes at the peak, or half of the highest level if that is more.
  std::vector<TimelineOwner> owners;
  std::size_t stacked = 0;                 // at most 15
  std::vector<std::vector<Bytes>> levels;  // [column][moment]; the last column is the sum of all other owners
  std::vector<Bytes> reserved;             // for each moment
  std::uint64_t peak = 0;                  // the moment of the peak; in `moments`
  std::uint64_t shown = 0;                 // the moment that the diagnosis is about; in `moments`
  std::vector<RefusedRequest> refused;     // at most 1000, each in `moments`
  std::vector<PlacedStorage> storages;     // by `from`
  // Number of storages beyond 60,000, which are left out: the smallest, and those live at `shown` or `peak` last.
  std::uint64_t storages_left_out = 0;
  std::vector<PlacedRange> ranges;   // empty: the file does not state them
  std::vector<Strip> strips;         // the deduced ones, then the program's own; each by `from`
  std::vector<std::uint64_t> steps;  // moments at which a step begins
  std::vector<std::string> ops;      // distinct names; empty: not recorded
  std::vector<std::int64_t> op_at;   // for each moment, index in `ops`, -1: none ran; empty: not recorded
  bool has_pool = true;              // false: reserved bytes and addresses mean nothing
};

// Makes the timeline. `levels` are those of the history's trace. `shown` is the event that the diagnosis is about;
// none: the peak. The columns of a moment add up to its live bytes.
Timeline make_timeline(const InputHistory& history, const trace::Levels& levels, std::optional<EventId> shown);

// The parts of make_timeline(), each in its own source, html_<part>.cpp.

// Returns ascending moments, with the first, the last and all of `wanted`. Up to 6,000 events give every moment. A
// longer history is cut into 1,500 equal stretches. Each gives its two ends, its lowest and highest live level, and its
// highest reserved level. So a curve through the moments loses no stretch's peak or valley, only smaller ones in it.
std::vector<std::uint64_t> sample_moments(const trace::Levels& levels, std::vector<std::uint64_t> wanted);
// Returns which addresses the pool held at which time, from the events and from the segments at the end. A range that
// is given back or is there at the end, but was never taken in the events, existed before the first event. Never fails:
// a range that is taken twice counts once.
std::vector<PlacedRange> reserved_ranges(const trace::Trace& trace, const trace::DeviceRecording& recorded);
// Fills `strips` and `steps`, which are drawn below the timeline. The strips show the deduced phases, and the phases
// that the program named itself, in annotations or in a take. Keeps the 600 longest strips of each kind and the first
// 2000 steps.
void add_strips(const InputHistory& history, Timeline& timeline);
// Fills `ops` and `op_at`: the op that was running at each moment. Leaves them empty if no ops were recorded.
void add_ops(const InputHistory& history, Timeline& timeline);

// Returns compact JSON that can be put into a script element: it has no '<'. `stacks` must be those of the history.
std::string to_json(const Timeline& timeline, const trace::Stacks& stacks);

}  // namespace ullage::report
