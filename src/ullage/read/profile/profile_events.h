// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a profiler trace's JSON that says who held memory: the memory events, and the ops, annotations and Python
// functions around them. All else is left out, so a file of 100 MB takes some 10 MB of memory. profile.cpp makes a
// trace::Profile of it.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

// A time in nanoseconds. The trace states it in microseconds, with up to three decimals. Only differences mean
// something.
struct Nanoseconds {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Nanoseconds, Nanoseconds) = default;
};

// The most bytes of one event, and of all events together, so that sums stay below 2^64.
inline constexpr std::int64_t kMostProfiledBytes = std::int64_t{1} << 61;

// An event named "[memory]" or "[OutOfMemory]".
struct MemoryEvent {
  Nanoseconds at;
  std::uint64_t thread = 0;
  int device_type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA
  int device = 0;       // -1 for the CPU
  bool out_of_memory = false;
  std::int64_t bytes = 0;  // negative: freed, else allocated; of an out-of-memory event: requested
  std::optional<Address> address;
  std::optional<std::int64_t> allocated, reserved;  // of the device after the event; 0 or less may mean unknown
};

// A stretch of time on one thread.
struct Span {
  enum class Kind : std::uint8_t { Op, Annotation, Python };
  Nanoseconds begin, end;
  std::uint64_t thread = 0;
  std::uint32_t name = 0;        // index in ProfileEvents::texts
  std::uint32_t call_stack = 0;  // index in texts of "train.py(12): main;...", innermost first; 0: none
  Kind kind = Kind::Op;
};

struct ProfiledDevice {
  int id = 0;
  std::string name;
  std::optional<Bytes> total;
};

struct ProfileEvents {
  std::vector<MemoryEvent> memory;      // in the file's order, not sorted by time
  std::vector<Span> spans;              // in the file's order, too
  std::vector<std::string> texts{""};   // each text once; the first is empty
  std::vector<ProfiledDevice> devices;  // deviceProperties
  bool event_index = false;             // some event has "Ev Idx": since torch 1.12
  bool base_time = false;               // there is baseTimeNanoseconds: since torch 2.4
};

// BadFile with `name:offset` if `json` is no JSON, no trace, or a trace without memory events. The same if a memory
// event lacks a valid time or size. The time it takes is proportional to the length of `json`, whatever is in it.
Result<ProfileEvents> read_profile_events(std::string_view json, const std::string& name);

}  // namespace ullage::read
