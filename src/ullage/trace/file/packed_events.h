// SPDX-License-Identifier: Apache-2.0
#pragma once

// The events of a take in a few bytes each, in chunks. The recorder's memory and the file hold the same chunks. Each
// chunk has its starting position, so it can be read alone. docs/trace_file.md describes the bytes.

#include "ullage/trace/file/interned.h"
#include "ullage/trace/file/packed.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::trace {

enum class PackedKind : std::uint8_t {
  Allocation,
  Free,
  OpBegin,
  OpEnd,
  Save,
  Unsave,
  OutOfMemory,
  Mark,
  Role,  // from here on: records that are no events, have no time, and lie before the next event
  Border,
  Charge,
  Line,
  kEnd
};
constexpr bool is_event(PackedKind kind) { return kind < PackedKind::Role; }

// A position in a recording. Ids count on from take to take.
struct Position {
  std::uint64_t next_storage = 0;
  std::uint64_t next_op = 0;
  std::uint64_t micros = 0;  // time of the newest event, since the take began
  std::uint64_t thread = 0;  // thread of the newest op
};

struct Chunk {
  Position begin;
  std::uint64_t events = 0;  // number of events; other records do not count
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  std::size_t capacity = 0;

  std::span<const std::byte> used() const { return {bytes.get(), size}; }
};

struct PackedUse {
  std::uint64_t storage = 0;
  TensorUse::How how = TensorUse::How::Read;
  std::uint64_t shape = 0;  // number of a shape; 0: the next two fields have it
  std::uint8_t dtype = 0;
  std::vector<std::int64_t> sizes;
};

struct PackedKnob {
  std::uint64_t name = 0;  // number of a text
  std::int64_t value = 0;
};

// A record of any kind. Only the fields of its kind are set.
struct PackedEvent {
  PackedKind kind = PackedKind::Mark;
  std::uint8_t flags = 0;
  std::uint64_t id = 0;                         // of the storage or the op; not relative
  bool in_op = false;                           // Allocation: an op made it
  std::uint64_t op = 0;                         // Allocation: that op
  std::uint64_t amount = 0;                     // bytes; for OpEnd nanoseconds, for Charge the folded bytes
  std::uint64_t name = 0, node = 0, layer = 0;  // texts; Role, Border and Line use the name
  std::uint64_t line = 0;                       // OpBegin: the text of the last Line before it in the chunk
  std::vector<PackedUse> uses;
  std::vector<PackedKnob> knobs;
};

// The flags of each kind of record. For Save, Role and Border they are no bits but one number: the SavedKind, the Role
// or the ReportedBorder::What.
inline constexpr std::uint8_t kBackward = 1, kGradMode = 2, kSliced = 4, kOtherThread = 8;  // OpBegin
inline constexpr std::uint8_t kFailed = 1, kReadsMapped = 2, kReadsOther = 4;               // OpEnd
inline constexpr std::uint8_t kNotInOp = 1;                                                 // Allocation
inline constexpr std::uint8_t kFlags[] = {1, 0, 15, 7, 3, 0, 0, 0, 1, 3, 0, 0};             // allowed, by PackedKind

// Reads one record after the other. Checks that every id was given out before.
class EventUnpacker final {
 public:
  EventUnpacker(const Position& begin, std::span<const std::byte> bytes) : in_(bytes), now_(begin) {}

  bool next(PackedEvent& event);  // false at the end, or if there is a problem

  const char* problem() const { return problem_; }  // what is wrong, or null
  const Position& now() const { return now_; }
  std::size_t at() const { return in_.at(); }

 private:
  void body(PackedEvent& event);
  void op_begin(PackedEvent& event);
  void uses(PackedEvent& event);
  void border(PackedEvent& event);
  std::uint64_t storage();
  std::uint64_t earlier(std::uint64_t next, const char* problem);
  void fail(const char* problem);

  PackedReader in_;
  Position now_;
  std::uint64_t line_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace ullage::trace
