// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/pickle/pickle_parser.h"

#include "ullage/read/pickle/pickle_bytes.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ullage::read {
namespace {

constexpr unsigned kNewestProtocol = 5;

PickleValue truth(bool value) { return {PickleValue::Kind::Bool, value}; }
PickleValue small(std::int64_t value) { return {PickleValue::Kind::Integer, std::uint64_t(value)}; }
// Returns whether `value` fits the 60 bits of two's complement that a PickleValue holds.
bool is_small(std::int64_t value) { return value >= -(std::int64_t{1} << 59) && value < (std::int64_t{1} << 59); }

}  // namespace

Result<Pickle> PickleParser::parse() {
  made_.file_ = file_;
  if (!begins_well() || !prepare() || !run()) return std::move(*error_);
  made_.root_ = stack_.back();
  made_.end_ = at_;
  return std::move(made_);
}

bool PickleParser::run() {
  while (at_ < file_.size()) {
    opcode_ = at_;
    if (!step(PickleOpcode(file_[at_++]))) return false;
    if (stopped_) return true;
  }
  opcode_ = at_;
  return fail("the pickle ends without its last opcode, STOP: the file is cut short");
}

inline bool PickleParser::step(PickleOpcode opcode) {
  switch (opcode) {
    // The most frequent first: most of a file fetches shared stack frames from the memo.
    case PickleOpcode::BinGet:
      return has(1) && fetch(take(1));
    case PickleOpcode::LongBinGet:
      return has(4) && fetch(take(4));
    case PickleOpcode::Memoize:
      return put(memo_entries_);
    case PickleOpcode::Mark:
      return mark_before_items();
    case PickleOpcode::BinInt:
      return small_integer(4, true);
    case PickleOpcode::BinInt1:
      return small_integer(1, false);
    case PickleOpcode::BinInt2:
      return small_integer(2, false);
    case PickleOpcode::Long1:
      return long_integer(1);
    case PickleOpcode::Long4:
      return long_integer(4);
    case PickleOpcode::ShortBinUnicode:
      return string(1);
    case PickleOpcode::BinUnicode:
      return string(4);
    case PickleOpcode::BinUnicode8:
      return string(8);
    case PickleOpcode::BinFloat:
      return floating();
    case PickleOpcode::None:
      return push({Kind::None, 0});
    case PickleOpcode::NewTrue:
      return push(truth(true));
    case PickleOpcode::NewFalse:
      return push(truth(false));
    case PickleOpcode::EmptyDict:
      return open(Kind::Dict);
    case PickleOpcode::EmptyList:
      return open(Kind::List);
    case PickleOpcode::SetItem:
      return needs(3) && extend(Kind::Dict, 2);
    case PickleOpcode::SetItems:
      return extend_to_mark(Kind::Dict);
    case PickleOpcode::Append:
      return needs(2) && extend(Kind::List, 1);
    case PickleOpcode::Appends:
      return append_to_mark();
    case PickleOpcode::EmptyTuple:
      return collect(Kind::Tuple, 0);
    case PickleOpcode::Tuple1:
      return collect(Kind::Tuple, 1);
    case PickleOpcode::Tuple2:
      return collect(Kind::Tuple, 2);
    case PickleOpcode::Tuple3:
      return collect(Kind::Tuple, 3);
    case PickleOpcode::Tuple:
      return collect_to_mark(Kind::Tuple);
    case PickleOpcode::Pop:
      return pop();
    case PickleOpcode::BinPut:
      return has(1) && put(take(1));
    case PickleOpcode::LongBinPut:
      return has(4) && put(take(4));
    case PickleOpcode::Put:
      return put(decimal_line());
    case PickleOpcode::Get:
      return fetch(decimal_line().value_or(memo_.size()));
    case PickleOpcode::Frame:
      return skip_frame();
    case PickleOpcode::Proto: {
      if (!has(1)) return false;
      const std::uint64_t protocol = take(1);
      return protocol <= kNewestProtocol ||
             fail("pickle protocol " + std::to_string(protocol) + "; 5 is the newest known");
    }
    case PickleOpcode::Stop:
      return stopped_ = needs(1);
  }
  if (content_ == PickleContent::Snapshot) return refuse(std::uint8_t(opcode));
  return calls(std::uint8_t(opcode)) ? object_step(CallingOpcode(opcode)) : checkpoint_step(CheckpointOpcode(opcode));
}

inline std::uint64_t PickleParser::take(std::size_t bytes) {
  const std::byte* from = &file_[at_];
  // One load of fixed size and a mask: a copy of `bytes` bytes would be a call, and would hold up the load behind it.
  const std::uint64_t value = left() >= 8 ? low_bytes(little_endian(from, 8), bytes) : little_endian(from, bytes);
  at_ += bytes;
  return value;
}

// FRAME says how many bytes follow, for readers that fetch them in one piece. The bytes are opcodes like any others;
// only their number is checked here.
bool PickleParser::skip_frame() {
  if (!has(8)) return false;
  const std::uint64_t bytes = take(8);
  return has(bytes);
}

bool PickleParser::string(std::size_t length_bytes, Kind kind) {
  if (!has(length_bytes)) return false;
  const std::uint64_t bytes = take(length_bytes);
  if (bytes > limits_.string_bytes) return too_many("bytes of a string", limits_.string_bytes);
  if (!has(bytes)) return false;
  at_ += bytes;
  return push({kind, opcode_});
}

inline bool PickleParser::long_integer(std::size_t length_bytes) {
  if (!has(length_bytes)) return false;
  const std::uint64_t bytes = take(length_bytes);
  if (bytes > limits_.integer_bytes) return too_many("bytes of an integer", limits_.integer_bytes);
  if (!has(bytes)) return false;
  if (bytes == 0 || bytes > 8) {
    at_ += bytes;
    return push(bytes == 0 ? small(0) : PickleValue(Kind::LongInteger, opcode_));
  }
  const std::int64_t value = sign_extended(take(bytes), bytes);
  return push(is_small(value) ? small(value) : PickleValue(Kind::LongInteger, opcode_));
}

inline bool PickleParser::small_integer(std::size_t bytes, bool is_signed) {
  if (!has(bytes)) return false;
  const std::uint64_t value = take(bytes);
  return push(small(is_signed ? sign_extended(value, bytes) : std::int64_t(value)));
}

bool PickleParser::floating() {
  if (!has(8)) return false;
  at_ += 8;
  return push({Kind::Float, opcode_});
}

// Reads an entry's number as protocol 0 writes it: decimal digits on a line. None if there is no such line.
std::optional<std::uint64_t> PickleParser::decimal_line() {
  const char* begin = reinterpret_cast<const char*>(file_.data()) + at_;
  const char* end = begin + std::min<std::uint64_t>(left(), 21);  // digits of 2^64 and the line's end
  std::uint64_t number = 0;
  const auto [last, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || last == end || *last != '\n') return std::nullopt;
  at_ += std::uint64_t(last - begin) + 1;
  return number;
}

inline bool PickleParser::put(std::optional<std::uint64_t> index) {
  if (!index) return fail("an entry of the memo has no number: the file is damaged");
  if (!needs(1)) return false;
  // Picklers number entries consecutively, and each takes at least a byte, so no number can exceed the bytes so far.
  if (*index >= at_)
    return fail("memo entry " + std::to_string(*index) + " after only " + std::to_string(at_) +
                " bytes: the file is damaged");
  if (*index >= limits_.memo) return too_many("entries of the memo", limits_.memo);
  if (*index >= memo_.size()) memo_.resize(*index + 1);
  const bool is_new = memo_[*index].kind() == Kind::Absent;
  memo_entries_ += is_new;
  has_changed_entries_ |= !is_new;
  memo_[*index] = stack_.back();
  return true;
}

inline bool PickleParser::fetch(std::uint64_t index) {
  if (index >= memo_.size() || memo_[index].kind() == Kind::Absent) {
    return fail("fetches a memo entry that is not there: the file is damaged");
  }
  return push(memo_[index]);
}

}  // namespace ullage::read
