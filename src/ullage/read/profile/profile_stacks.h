// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds which ops were running on a thread when memory was allocated there. A profiler trace does not say so. But it
// has the spans of each thread's ops and Python functions, so the open ones at that time are known. They make the stack
// of the allocation, innermost first: first the ops, then the Python functions that called them.
//
//   thread   [ train.py(12): main ........................... ]
//               [ aten::linear ............................ ]
//                  [ aten::addmm ............. ]
//                        x allocation; its stack: addmm, linear, main

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
  std::vector<At> at;                 // index: as in ProfileEvents::memory
  std::vector<std::uint32_t> parent;  // index: as in ProfileEvents::spans. The innermost op around the span, or kNoSpan
};

// Adds the stacks to `stacks`. If more than 128 spans are nested, only the innermost 128 make the stack. Spans of one
// thread may overlap without being nested; those that have ended are left out. If no span of a Python function is open,
// the call stack that the innermost of the open spans names is used.
OpenSpans find_open_spans(const ProfileEvents& events, trace::Stacks& stacks);

// Makes a frame of a text: "train.py(12): main" is line 12 of train.py in main. Any other text is the name of a
// function in file "??".
trace::Frame frame_of(std::string_view text);

}  // namespace ullage::read
