// SPDX-License-Identifier: Apache-2.0
#pragma once

// Call stacks, each kept once, because a recording repeats the same few thousand stacks hundreds of thousands of times.
// Other code keeps a StackId. Frames and stacks are never removed, so ids stay valid as long as the Stacks object
// lives. References and spans are valid only until the next add(). An id that is not there is a ContractError.

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ullage::trace {

// 32 bits: a recording holds some ten million references to frames.
struct FrameId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(FrameId, FrameId) = default;
};

struct StackId {
  std::uint32_t value = 0;  // 0: not recorded
  friend constexpr auto operator<=>(StackId, StackId) = default;
};

struct Frame {
  std::string file;  // "??" for C++ frames of PyTorch's own recordings
  std::string function;
  std::uint64_t line = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

class Stacks {
 public:
  Stacks();

  FrameId add(Frame frame);
  // Adds a stack, innermost frame first. Returns StackId{0} if it has no frames.
  StackId add(std::span<const FrameId> frames);

  const Frame& frame(FrameId id) const;
  // Innermost first; empty for StackId{0}.
  std::span<const FrameId> frames(StackId id) const;
  std::size_t frame_count() const { return frames_.size(); }
  std::size_t stack_count() const { return begins_.size() - 1; }  // StackId{0} included

 private:
  std::vector<Frame> frames_;
  std::unordered_map<std::string, FrameId> frames_by_text_;
  std::vector<FrameId> all_;         // the frames of all stacks, one stack after the other
  std::vector<std::size_t> begins_;  // stack i is [begins_[i], begins_[i + 1]) in all_
  std::unordered_map<std::uint64_t, StackId> newest_by_hash_;
  std::vector<StackId> older_of_same_hash_;  // index: StackId; StackId{0} ends the chain
};

}  // namespace ullage::trace
