// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a Take from its parts, as trace_file.h finds them in a file. Checks everything in them, because a file may be
// damaged or malicious: ids, bytes, counts. Bad parts give a Problem.

#include "ullage/trace/file/file_json.h"
#include "ullage/trace/file/gap_part.h"
#include "ullage/trace/file/packed_events.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::trace {

struct Problem {
  std::string message;
  std::size_t at = 0;  // offset in the part's content
};

inline constexpr const char* kTooMuch =
    "needs more memory than a trace file of this size can need: it was not written by ullage";

// The memory that reading a file may still take. At the beginning it is 1 MiB plus kTimes the file's size. Without a
// limit a small malicious file could use one long name, or one shape with many sizes, in every event.
class Allowance final {
 public:
  explicit Allowance(std::size_t file) : left_(kLeast + kTimes * static_cast<std::uint64_t>(file)) {}
  // False if fewer bytes are left; nothing is spent then.
  bool spend(std::uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  // An op without tensors and with three names takes 8 bytes in the file and about 500 in memory.
  static constexpr std::uint64_t kTimes = 128;
  static constexpr std::uint64_t kLeast = 1 << 20;

 private:
  std::uint64_t left_;
};

// The texts and shapes that events refer to by number. Text 0 is empty; shape 0 is not used.
struct FileTables {
  struct Shape {
    std::uint8_t dtype = 0;
    std::vector<std::int64_t> sizes;
  };
  std::vector<std::string> texts;
  std::vector<Shape> shapes;

  std::optional<Problem> read_texts(std::span<const std::byte> content, Allowance& allowance);
  std::optional<Problem> read_shapes(std::span<const std::byte> content, Allowance& allowance);
};

// Maps ids of a recording to indices in a take. Ids must be added in ascending order; most are consecutive.
class IdRanges final {
 public:
  void add(std::uint64_t id);
  std::optional<std::uint64_t> find(std::uint64_t id) const;

 private:
  struct Range {
    std::uint64_t begin = 0, end = 0, place = 0;
  };
  std::vector<Range> ranges_;
  std::uint64_t size_ = 0;
};

class TakeReader final {
 public:
  TakeReader(const FileTables& tables, Allowance& allowance) : tables_(tables), allowance_(allowance) {}

  // Call begin(), then before(), then chunk() and gap() in the order of their parts in the file, then end(), then
  // take().
  std::optional<Problem> begin(const TakeHead& head);
  std::optional<Problem> before(std::span<const std::byte> content);  // storages that lived when the take began
  std::optional<Problem> chunk(std::span<const std::byte> content);   // some of the events
  std::optional<Problem> gap(std::span<const std::byte> content);     // a stretch in which events were lost
  std::optional<Problem> end(const TakeEnd& end);
  // Moves the take out.
  Take take() { return std::move(take_); }

 private:
  // No machine has this much. Sums of two numbers below it stay below 2^63.
  static constexpr std::uint64_t kMost = 1ull << 62;
  // Stands for the death of a storage that is still alive; end() replaces it by the end of the trace.
  static constexpr EventId kNever{UINT64_MAX};

  // These return null, or what is wrong.
  const char* add(const PackedEvent& event);
  const char* add_records(std::span<const std::byte> bytes);
  const char* add_storage(std::uint64_t id, std::uint64_t bytes, OpId op, bool from_before);
  const char* die(std::uint64_t id);
  const char* begin_op(const PackedEvent& event);
  const char* end_op(const PackedEvent& event);
  const char* add_uses(const PackedEvent& event, OpDetail& detail);
  const char* add_role(const PackedEvent& event);
  const char* add_border(const PackedEvent& event);
  const char* add_charge(std::int64_t bytes);
  const char* set_event(auto what);
  const char* fill_gap(const GapPart& gap);
  const char* text(std::uint64_t number, std::string& to);
  std::optional<OpId> known_op(std::uint64_t id) const;

  const FileTables& tables_;
  Allowance& allowance_;
  Take take_;
  Position now_;
  IdRanges storages_, ops_;
  Bytes admitted_;             // sum of all storages
  std::uint64_t charged_ = 0;  // sum of all charges (bytes outside the pool), each without its sign
  // A file has no addresses. Storages get made-up ones, each above all earlier ones.
  std::uint64_t first_address_free_ = 0;
  std::uint64_t events_ = 0;  // lost ones included
};

}  // namespace ullage::trace
