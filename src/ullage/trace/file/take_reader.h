// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a Take from its parts and checks everything in them: ids, bytes, counts. Bad parts give a Problem.

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
    "more is said here than a trace of this size can say: it was not written by ullage";

// The memory that reading a file may still take, which is limited to a multiple of the file's size. Otherwise a
// malicious file could use one long name, or one shape with many sizes, in every event.
class Allowance final {
 public:
  explicit Allowance(std::size_t file) : left_(kLeast + kTimes * static_cast<std::uint64_t>(file)) {}
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

  // To be called in this order, with chunk() and gap() as the parts come.
  std::optional<Problem> begin(const TakeHead& head);
  std::optional<Problem> before(std::span<const std::byte> content);
  std::optional<Problem> chunk(std::span<const std::byte> content);
  std::optional<Problem> gap(std::span<const std::byte> content);
  std::optional<Problem> end(const TakeEnd& end);
  Take take() { return std::move(take_); }

 private:
  // No machine has this much. Sums of two numbers below it stay below 2^63.
  static constexpr std::uint64_t kMost = 1ull << 62;
  static constexpr EventId kNever{UINT64_MAX};  // until the number of events is known

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
  std::uint64_t charged_ = 0;  // sum of all charges without their signs
  std::uint64_t first_address_free_ = 0;
  std::uint64_t events_ = 0;  // lost ones included
};

}  // namespace ullage::trace
