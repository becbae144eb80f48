// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot_stacks.h"

#include <utility>

namespace ullage::read {
namespace {

enum FrameField { kFile, kFunction, kLine };

constexpr std::size_t kRecent = 1u << 12;  // as many lists as the pickle parser remembers (kFilledKnown)

}  // namespace

SnapshotStacks::SnapshotStacks(SnapshotSource& source, trace::Stacks& stacks)
    : source_(source),
      stacks_(stacks),
      fields_({"filename", "name", "line"}),
      ids_(source.pickle.container_count()),
      recent_(kRecent) {}

trace::StackId SnapshotStacks::stack(PickleValue frames) {
  if (is_missing(frames)) return {};
  if (frames.kind() != PickleValue::Kind::List && frames.kind() != PickleValue::Kind::Tuple) {
    return source_.fail(frames, "the frames of a stack are not a list"), trace::StackId{};
  }
  std::uint32_t& known = ids_[frames.payload()];
  if (known != 0) return {known - 1};
  const auto items = source_.pickle.items(frames);
  Recent& recent = recent_[reinterpret_cast<std::uintptr_t>(items.data()) / sizeof(PickleValue) % kRecent];
  if (recent.items != items.data() || recent.size != items.size()) {
    recent = {items.data(), items.size(), convert(items)};
  }
  known = recent.stack.value + 1;
  return recent.stack;
}

trace::StackId SnapshotStacks::convert(std::span<const PickleValue> items) {
  one_.clear();
  for (const PickleValue one : items) {
    const std::uint32_t id = one.kind() == PickleValue::Kind::Dict ? ids_[one.payload()] : 0;
    one_.push_back(id != 0 ? trace::FrameId{id - 1} : frame(one));
    if (source_.failed()) return {};
  }
  return stacks_.add(one_);
}

std::size_t SnapshotStacks::Hash::operator()(const Parts& parts) const {
  std::uint64_t sum = 0;
  for (const PickleValue one : {parts.file, parts.function, parts.line}) {
    sum = (sum ^ one.payload()) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
    sum ^= sum >> 29;
  }
  return sum;
}

trace::FrameId SnapshotStacks::frame(PickleValue dict) {
  fields_.read(source_, dict, "a stack frame");
  if (source_.failed()) return {};
  const Parts parts{fields_[kFile], fields_[kFunction], fields_[kLine]};
  const auto known = frames_.find(parts);
  if (known != frames_.end()) return ids_[dict.payload()] = known->second.value + 1, known->second;
  trace::Frame one{source_.text(parts.file), source_.text(parts.function), 0};
  // C++ frames of some versions have no line, or a negative one.
  one.line = source_.pickle.unsigned_integer(parts.line).value_or(0);
  const trace::FrameId made = stacks_.add(std::move(one));
  frames_.emplace(parts, made);
  ids_[dict.payload()] = made.value + 1;
  return made;
}

}  // namespace ullage::read
