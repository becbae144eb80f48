// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/pickle_writer.h"

#include "ullage/base/utf8.h"

#include <bit>
#include <ostream>

namespace ullage::report {
namespace {

enum Opcode : unsigned {
  kMark = '(',
  kStop = '.',
  kEmptyDict = '}',
  kSetItems = 'u',
  kEmptyList = ']',
  kAppends = 'e',
  kTuple2 = 0x86,
  kInt1 = 'K',
  kInt2 = 'M',
  kInt4 = 'J',
  kLong1 = 0x8a,
  kFloat = 'G',
  kTrue = 0x88,
  kFalse = 0x89,
  kShortText = 0x8c,
  kText = 'X',
  kMemoize = 0x94,
  kGet = 'h',
  kLongGet = 'j',
  kProtocol = 0x80
};

// Surrogates stay, because Python's pickles may have them.
std::string as_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = first_utf8(text).length;
    if (length == 0) result += '?';
    result += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace

PickleWriter::PickleWriter(std::ostream& out) : out_(out) {
  byte(kProtocol);
  byte(4);
}

void PickleWriter::begin_dict() {
  byte(kEmptyDict);
  byte(kMark);
}
void PickleWriter::end_dict() { byte(kSetItems); }
void PickleWriter::begin_list() {
  byte(kEmptyList);
  byte(kMark);
}
void PickleWriter::end_list() { byte(kAppends); }
void PickleWriter::end_pair() { byte(kTuple2); }

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0) return integer(static_cast<std::uint64_t>(value));
  const bool small = value >= INT32_MIN;
  byte(small ? kInt4 : kLong1);
  if (!small) byte(8);
  little_endian(static_cast<std::uint64_t>(value), small ? 4 : 8);
}

void PickleWriter::integer(std::uint64_t value) {
  if (value <= UINT8_MAX) {
    byte(kInt1);
    little_endian(value, 1);
  } else if (value <= UINT16_MAX) {
    byte(kInt2);
    little_endian(value, 2);
  } else if (value <= INT32_MAX) {
    byte(kInt4);
    little_endian(value, 4);
  } else {
    // Two's complement: a value that uses the top bit needs a ninth byte for its sign.
    const bool fills = value > INT64_MAX;
    byte(kLong1);
    byte(fills ? 9 : 8);
    little_endian(value, 8);
    if (fills) byte(0);
  }
}

void PickleWriter::real(double value) {
  byte(kFloat);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) byte(static_cast<unsigned>(bits >> shift & 0xff));
}

void PickleWriter::boolean(bool value) { byte(value ? kTrue : kFalse); }

void PickleWriter::text(std::string_view value) {
  const auto [found, is_new] = texts_.try_emplace(std::string(value));
  if (!is_new) return again(found->second);
  const std::string written = as_utf8(value);
  const bool is_short = written.size() <= UINT8_MAX;
  byte(is_short ? kShortText : kText);
  little_endian(written.size(), is_short ? 1 : 4);
  out_ << written;
  found->second = remember();
}

PickleWriter::Memo PickleWriter::remember() {
  byte(kMemoize);
  return {memos_++};
}

void PickleWriter::again(Memo memo) {
  const bool is_short = memo.index <= UINT8_MAX;
  byte(is_short ? kGet : kLongGet);
  little_endian(memo.index, is_short ? 1 : 4);
}

void PickleWriter::finish() { byte(kStop); }

void PickleWriter::byte(unsigned value) { out_.put(static_cast<char>(value)); }

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) byte(static_cast<unsigned>(value >> (8 * i) & 0xff));
}

}  // namespace ullage::report
