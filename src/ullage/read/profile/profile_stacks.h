// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the ops that were running on a thread when memory was allocated there, from the times of their spans alone.
// Returns them outermost first, as a stack.
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
    std::uint32_t op = kNoSpan;  // the innermost op, an index in ProfileEvents::spans
  };
  std::vector<At> at;                 // for each of ProfileEvents::memory
  std::vector<std::uint32_t> parent;  // for each of ProfileEvents::spans, the op around it or kNoSpan
};

// If more than 128 spans are nested, only the innermost 128 make the stack.
OpenSpans find_open_spans(const ProfileEvents& events, trace::Stacks& stacks);

// Returns "train.py(12): main" as a frame; any other text is the function's name.
trace::Frame frame_of(std::string_view text);

}  // namespace ullage::read
