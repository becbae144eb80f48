// SPDX-License-Identifier: Apache-2.0
// How PickleParser builds lists, tuples and dicts. All containers share one array; each has its items side by side:
//
//   items   [ list 0 | dict 1: key value key value | list 2 .... (room) | ... ]
//
// Nearly every container is filled at once and gets exactly the room it needs. A container that grows later moves to
// the end with twice its room, so that all moves together cost no more than the items. A list's filled places are never
// overwritten. So a list with the same items as an earlier one can share its place. In snapshots every event has a list
// of its own, but only a few hundred stacks differ. As each is kept once, a third of the memory is enough.
#include "ullage/read/pickle/pickle_parser.h"

#include <algorithm>

namespace ullage::read {
namespace {

constexpr std::size_t kFilledKnown = 1u << 12;  // places for lists by their items; each lookup costs a comparison
// places for lists by what fills them (pickle_fetches.cpp); each takes two
constexpr std::size_t kFetchesKnown = 1u << 13;
constexpr std::size_t kLeastShared = 4;  // items; sharing shorter lists is not worth it

// Uses four independent sums, so that the multiplications need not wait for each other.
std::uint64_t hash(std::span<const PickleValue> items) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;  // Fibonacci hashing
  std::uint64_t sums[4] = {items.size(), 1, 2, 3};
  std::size_t i = 0;
  for (; i + 4 <= items.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] = (sums[lane] ^ items[i + lane].word()) * kOdd;
  }
  for (; i < items.size(); ++i) sums[0] = (sums[0] ^ items[i].word()) * kOdd;
  const std::uint64_t sum = (sums[0] ^ (sums[1] >> 7) ^ (sums[2] >> 13) ^ (sums[3] >> 19)) * kOdd;
  return sum >> 40;
}

}  // namespace

bool PickleParser::prepare() {
  filled_.resize(kFilledKnown);
  if (content_ == PickleContent::Checkpoint) return true;  // it is unknown how much of the file is pickle
  fetches_.resize(kFetchesKnown);
  // Snapshots have about one value for ten bytes. Reserving too much is cheap: unused pages never become resident.
  made_.items_.reserve(std::min<std::size_t>(file_.size() / 8, limits_.items));
  made_.containers_.reserve(std::min<std::size_t>(file_.size() / 64, limits_.containers));
  memo_.reserve(std::min<std::size_t>(file_.size() / 32, limits_.memo));
  return true;
}

bool PickleParser::mark() {
  if (marks_.size() >= limits_.marks) return too_many("marks: containers begun and not ended", limits_.marks);
  marks_.push_back(stack_.size());
  fence_ = stack_.size();
  return true;
}

bool PickleParser::drop_mark() {
  if (marks_.empty()) return fail("ends a container that was not begun: the file is damaged");
  marks_.pop_back();
  fence_ = marks_.empty() ? 0 : marks_.back();
  return true;
}

// Removes the mark if nothing is above it, as Python does.
bool PickleParser::pop() {
  if (above_mark() == 0) return drop_mark();
  stack_.pop_back();
  return true;
}

bool PickleParser::open(Kind kind) {
  if (made_.containers_.size() >= limits_.containers) return too_many("lists, tuples and dicts", limits_.containers);
  if (stack_.size() >= limits_.stack) return too_many("values on the stack", limits_.stack);
  stack_.push_back(new_container(kind));
  return true;
}

PickleValue PickleParser::new_container(Kind kind) {
  made_.containers_.push_back({.offset = std::uint32_t(opcode_)});
  return {kind, made_.containers_.size() - 1};
}

bool PickleParser::collect(Kind kind, std::size_t count) {
  if (!needs(count) || !open(kind)) return false;
  std::rotate(stack_.end() - std::ptrdiff_t(count) - 1, stack_.end() - 1, stack_.end());
  return extend(kind, count);
}

bool PickleParser::collect_to_mark(Kind kind) {
  const std::size_t count = above_mark();
  return drop_mark() && collect(kind, count);
}

bool PickleParser::extend_to_mark(Kind kind) {
  const std::size_t count = above_mark();
  return drop_mark() && needs(count + 1) && extend(kind, count);
}

// Moves the top `count` values of the stack into the container below them. The caller has checked that all are there.
bool PickleParser::extend(Kind kind, std::size_t count) {
  PickleValue target = stack_[stack_.size() - count - 1];
  if (target.kind() == Kind::Object && kind != Kind::Object && !enter_contents(target, kind)) return false;
  if (target.kind() != kind) {
    return fail(kind == Kind::Dict ? "sets items of a value that is not a dict"
                                   : "appends to a value that is not a list");
  }
  if (kind == Kind::Dict && count % 2 != 0) return fail("sets a key without a value: the file is damaged");
  Pickle::Container& one = made_.containers_[target.payload()];
  const auto from = stack_.end() - std::ptrdiff_t(count);
  if (kind == Kind::List && one.size == 0 && count >= kLeastShared && share(one, {from, stack_.end()})) {
    stack_.erase(from, stack_.end());
    return true;
  }
  if (!make_room(one, count)) return false;
  const std::size_t end = std::size_t(one.begin) + one.size;
  if (end == made_.items_.size()) {
    made_.items_.insert(made_.items_.end(), from, stack_.end());
  } else {
    std::copy(from, stack_.end(), made_.items_.begin() + std::ptrdiff_t(end));
  }
  one.size += std::uint32_t(count);
  stack_.erase(from, stack_.end());
  return true;
}

// If an equal list is remembered, makes `one` share its place, with no room of its own, and returns true. Otherwise
// remembers these items and returns false.
bool PickleParser::share(Pickle::Container& one, std::span<const PickleValue> items) {
  Items& known = filled_[hash(items) % kFilledKnown];
  if (known.size == items.size() &&
      std::equal(items.begin(), items.end(), made_.items_.begin() + std::ptrdiff_t(known.begin))) {
    one.begin = known.begin;
    one.size = known.size;
    return true;
  }
  known = {std::uint32_t(made_.items_.size()), std::uint32_t(items.size())};  // the caller puts them there
  return false;
}

// Makes room for `count` more items. They go after the container's own items if those places are free or the array ends
// there; else the container moves.
bool PickleParser::make_room(Pickle::Container& one, std::size_t count) {
  auto& items = made_.items_;
  if (one.size + count <= one.capacity) return true;
  const bool at_end = std::size_t(one.begin) + one.size == items.size();
  const std::size_t needed = one.size + count;
  const std::size_t room = one.size == 0 || at_end ? needed : 2 * needed;
  const std::size_t begin = at_end ? one.begin : items.size();
  if (begin + room > limits_.items) return too_many("values in lists, tuples and dicts", limits_.items);
  if (room != needed) {  // moves; absent values fill its room, so that the next container begins after it
    items.resize(begin + room);
    std::copy_n(items.begin() + one.begin, one.size, items.begin() + std::ptrdiff_t(begin));
  }
  one.begin = std::uint32_t(begin);
  one.capacity = std::uint32_t(room);
  return true;
}

}  // namespace ullage::read
