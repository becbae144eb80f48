// SPDX-License-Identifier: Apache-2.0
// How PickleParser reads a list whose items are all fetched from the memo. Most of a snapshot's bytes are such lists,
// the stacks of its events:
//
//   EMPTY_LIST MEMOIZE MARK  LONG_BINGET 71 BINGET 9 LONG_BINGET 68 ... APPENDS
//                            [ the same bytes mean the same items       ]
//
// A program repeats itself: a stack is mostly followed by the stack that followed it the last time. So the bytes are
// first compared with those of that stack. If they differ, they are compared with those of the latest stack that has
// the same bytes in up to four places. If the bytes are equal, the list gets its items at once, and no opcode is read.
#include "ullage/read/pickle/pickle_bytes.h"
#include "ullage/read/pickle/pickle_parser.h"

#include <cstring>

namespace ullage::read {
namespace {

constexpr std::size_t kLeastBytes = 8;  // two to four fetches; a shorter list is read as quickly without this

// Returns how many opcodes the bytes have if each of them fetches from the memo; else 0.
std::size_t fetches_in(std::span<const std::byte> bytes) {
  std::size_t count = 0;
  std::size_t at = 0;
  for (; at < bytes.size(); ++count) {
    switch (PickleOpcode(bytes[at])) {
      case PickleOpcode::BinGet:
        at += 2;
        break;
      case PickleOpcode::LongBinGet:
        at += 5;
        break;
      default:
        return 0;
    }
  }
  return at == bytes.size() ? count : 0;
}

}  // namespace

// Begins a container. If it is an empty list, and the bytes that fill it are known, fills it.
bool PickleParser::mark_before_items() {
  const bool fills = content_ == PickleContent::Snapshot && above_mark() > 0 && stack_.back().kind() == Kind::List;
  if (!mark()) return false;
  if (!fills) return true;
  items_at_ = at_;
  if (has_changed_entries_ || left() < kLeastBytes) return true;
  Pickle::Container& list = made_.containers_[stack_.back().payload()];
  if (list.size != 0) return true;
  const Places places = places_of_fetches();
  for (const std::size_t place : {places.after_list, places.of_bytes}) {
    const Fetches& known = fetches_[place];
    if (known.bytes == 0 || known.bytes > left()) continue;
    if (std::memcmp(&file_[at_], &file_[known.offset], known.bytes) != 0) continue;
    list.begin = list_before_ = known.items.begin;
    list.size = known.items.size;
    at_ += known.bytes;
    fetches_[places.after_list] = known;
    return drop_mark();
  }
  return true;
}

bool PickleParser::append_to_mark() {
  if (!extend_to_mark(Kind::List)) return false;
  if (content_ == PickleContent::Snapshot) remember_fetches(made_.containers_[stack_.back().payload()]);
  return true;
}

// Returns where the bytes at `items_at_` may be remembered: by their begin and the list filled last, and by bytes from
// four places. The latter may lie beyond a short list; then the list is only found by the former.
PickleParser::Places PickleParser::places_of_fetches() const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;  // Fibonacci hashing
  const auto place = [&](std::uint64_t sum) { return (sum * kOdd >> 40) % fetches_.size(); };
  const std::uint64_t first = little_endian(&file_[items_at_], kLeastBytes) * kOdd;
  std::uint64_t some = first;
  for (const std::size_t further : {32, 64, 96}) {
    if (items_at_ + further + kLeastBytes > file_.size()) break;
    some = (some ^ little_endian(&file_[items_at_ + further], kLeastBytes)) * kOdd;
  }
  return {place(first ^ list_before_), place(some)};
}

// Remembers the bytes that filled the list, if they only fetch. `at_` is after APPENDS.
void PickleParser::remember_fetches(const Pickle::Container& list) {
  const std::uint64_t bytes = at_ - items_at_;
  const bool whole = items_at_ < opcode_ && fetches_in(file_.subspan(items_at_, opcode_ - items_at_)) == list.size;
  if (!whole || bytes < kLeastBytes || has_changed_entries_) return;
  const Places places = places_of_fetches();
  fetches_[places.after_list] = {std::uint32_t(items_at_), std::uint32_t(bytes), {list.begin, list.size}};
  fetches_[places.of_bytes] = fetches_[places.after_list];
  list_before_ = list.begin;
}

}  // namespace ullage::read
