// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/gap_part.h"

namespace ullage::trace {

void append_gap(PackedBytes& out, const Position& begin, const GapPart& gap) {
  append_packed(out, gap.events);
  append_packed(out, gap.end.next_storage - begin.next_storage);
  append_packed(out, gap.end.next_op - begin.next_op);
  append_packed(out, gap.end.micros - begin.micros);
  append_packed(out, gap.end.thread);
  append_packed(out, gap.born.size());
  std::uint64_t next = begin.next_storage;
  for (const GapPart::Born& one : gap.born) {
    append_packed(out, one.storage - next);
    append_packed(out, one.bytes);
    next = one.storage + 1;
  }
  append_packed(out, gap.died.size());
  for (const std::uint64_t storage : gap.died) append_packed(out, begin.next_storage - storage);
  append_packed(out, gap.ended.size());
  for (const GapPart::Ended& one : gap.ended) {
    append_packed(out, begin.next_op - one.op);
    append_packed(out, one.took_ns);
  }
  out.insert(out.end(), gap.records.begin(), gap.records.end());
}

namespace {

// Sets `sum` to from + more. Returns false if that is above 2^62.
bool add(std::uint64_t from, std::uint64_t more, std::uint64_t& sum) {
  constexpr std::uint64_t kMost = 1ull << 62;
  if (from > kMost || more > kMost - from) return false;
  sum = from + more;
  return true;
}

const char* read_lists(PackedReader& in, const Position& begin, GapPart& gap) {
  constexpr const char* kCutOff = "a gap that is cut off";
  std::uint64_t count = in.number();
  if (count > in.left() / 2) return kCutOff;
  std::uint64_t next = begin.next_storage;
  for (std::uint64_t i = 0; i < count; ++i) {
    GapPart::Born one;
    if (!add(next, in.number(), one.storage) || one.storage >= gap.end.next_storage) {
      return "a storage born after the gap";
    }
    one.bytes = in.number();
    gap.born.push_back(one);
    next = one.storage + 1;
  }
  count = in.number();
  if (count > in.left()) return kCutOff;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t back = in.number();
    if (back == 0 || back > begin.next_storage) return "a storage that was not allocated yet";
    gap.died.push_back(begin.next_storage - back);
  }
  count = in.number();
  if (count > in.left() / 2) return kCutOff;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t back = in.number();
    if (back == 0 || back > begin.next_op) return "an op that did not begin yet";
    gap.ended.push_back({begin.next_op - back, in.number()});
  }
  return in.failed() ? kCutOff : nullptr;
}

}  // namespace

const char* read_gap(std::span<const std::byte> bytes, const Position& begin, GapPart& gap, std::size_t& at) {
  PackedReader in(bytes);
  const auto read = [&]() -> const char* {
    gap.events = in.number();
    gap.end = begin;
    if (!add(begin.next_storage, in.number(), gap.end.next_storage) ||
        !add(begin.next_op, in.number(), gap.end.next_op) || !add(begin.micros, in.number(), gap.end.micros)) {
      return "a gap with counts that cannot be";
    }
    gap.end.thread = in.number();
    return read_lists(in, begin, gap);
  };
  const char* problem = read();
  at = in.at();
  const auto rest = bytes.subspan(at);
  gap.records.assign(rest.begin(), rest.end());
  return problem;
}

}  // namespace ullage::trace
