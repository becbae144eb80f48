// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/recording/stacks.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <utility>

namespace ullage::trace {
namespace {

std::uint64_t hash(std::span<const FrameId> frames) {
  std::uint64_t sum = frames.size();
  for (const FrameId frame : frames) {
    sum = (sum ^ frame.value) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
    sum ^= sum >> 29;
  }
  return sum;
}

}  // namespace

Stacks::Stacks() : begins_{0, 0}, older_of_same_hash_{StackId{}} {}

FrameId Stacks::add(Frame frame) {
  std::string text = frame.file + '\0' + frame.function + '\0' + std::to_string(frame.line);
  const auto [found, is_new] = frames_by_text_.try_emplace(std::move(text), FrameId{std::uint32_t(frames_.size())});
  if (is_new) frames_.push_back(std::move(frame));
  return found->second;
}

StackId Stacks::add(std::span<const FrameId> frames) {
  if (frames.empty()) return StackId{};
  StackId& newest = newest_by_hash_[hash(frames)];
  for (StackId one = newest; one != StackId{}; one = older_of_same_hash_[one.value]) {
    if (std::ranges::equal(this->frames(one), frames)) return one;
  }
  const StackId added{std::uint32_t(stack_count())};
  all_.insert(all_.end(), frames.begin(), frames.end());
  begins_.push_back(all_.size());
  older_of_same_hash_.push_back(newest);
  return newest = added;
}

const Frame& Stacks::frame(FrameId id) const {
  ULLAGE_CHECK(id.value < frames_.size(), "no such frame");
  return frames_[id.value];
}

std::span<const FrameId> Stacks::frames(StackId id) const {
  ULLAGE_CHECK(id.value < stack_count(), "no such stack");
  return std::span(all_).subspan(begins_[id.value], begins_[id.value + 1] - begins_[id.value]);
}

}  // namespace ullage::trace
