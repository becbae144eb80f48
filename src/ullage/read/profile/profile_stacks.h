// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which spans were open on a thread when memory was allocated there, told by time alone: the ops, outermost to
// innermost, and the stack they make.
//
//   thread   [ aten::linear ............................ ]
//               [ aten::addmm ............. ]
//                     x allocation: stack addmm < linear < the Python frames above them

#include "ullage/read/profile/profile_events.h"
#include "ullage/trace/recording/stacks.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ullage::read {

inline constexpr std::uint32_t kNoSpan = UINT32_MAX;

struct OpenSpans {
  struct At {
    trace::StackId stack;
    std::uint32_t op = kNoSpan;  // the innermost op: an index of ProfileEvents::spans
  };
  std::vector<At> at;                 // index: that of ProfileEvents::memory
  std::vector<std::uint32_t> parent;  // of a span the op around it, or kNoSpan; index: that of ProfileEvents::spans
};

// Of spans nested deeper than 128 the innermost ones make the stack.
OpenSpans find_open_spans(const ProfileEvents& events, trace::Stacks& stacks);

// "train.py(12): main" as a frame; any other text is the function's name.
trace::Frame frame_of(std::string_view text);

}  // namespace ullage::read
