// SPDX-License-Identifier: Apache-2.0
#pragma once

// A profiler trace as its JSON says it, with everything that does not concern memory left out: what is kept of a trace
// of 100 MB are some ten MB. profile.cpp makes traces of it.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

// As the trace says it, which has microseconds with up to three decimals; only differences mean something.
struct Nanoseconds {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Nanoseconds, Nanoseconds) = default;
};

// No count of bytes of one event is larger, nor all of them together: sums of them stay below 2^64.
inline constexpr std::int64_t kMostProfiledBytes = std::int64_t{1} << 61;

// "[memory]" and "[OutOfMemory]".
struct MemoryEvent {
  Nanoseconds at;
  std::uint64_t thread = 0;
  int device_type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA
  int device = 0;       // -1 of the CPU
  bool out_of_memory = false;
  std::int64_t bytes = 0;  // + allocated, - freed; of an out-of-memory event what was asked for
  std::optional<Address> address;
  std::optional<std::int64_t> allocated, reserved;  // of the device after the event; zero or less where not known
};

// Something that took a while on a thread.
struct Span {
  enum class Kind : std::uint8_t { Op, Annotation, Python };
  Nanoseconds begin, end;
  std::uint64_t thread = 0;
  std::uint32_t name = 0;        // of ProfileEvents::texts
  std::uint32_t call_stack = 0;  // likewise: "train.py(12): main;...", innermost first; 0: none
  Kind kind = Kind::Op;
};

struct ProfiledDevice {
  int id = 0;
  std::string name;
  std::optional<Bytes> total;
};

struct ProfileEvents {
  std::vector<MemoryEvent> memory;      // in the file's order, which is not that of time
  std::vector<Span> spans;              // likewise
  std::vector<std::string> texts{""};   // each once
  std::vector<ProfiledDevice> devices;  // deviceProperties
  bool event_index = false;             // some event has "Ev Idx": since torch 1.12
  bool base_time = false;               // there is baseTimeNanoseconds: since torch 2.4
};

// BadFile with `name:offset`: no JSON, no trace, a trace without memory events, or one whose memory events lack a time
// or a size that 64 bits hold. The time it takes follows the length of the text, whatever is in it.
Result<ProfileEvents> read_profile_events(std::string_view json, const std::string& name);

}  // namespace ullage::read
