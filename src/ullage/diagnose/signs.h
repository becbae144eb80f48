// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program was doing, read from the names in its stack and from the lines it printed: "in an evaluation loop",
// "in optimizer.step". A sign is a hint with the words it was seen in, never a proof. The words looked for are one
// table, signs.cpp.

#include "ullage/trace/recording/out_of_memory.h"
#include "ullage/trace/recording/stacks.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ullage::diagnose {

enum class Sign {
  Evaluation,
  OptimizerStep,
  Backward,
  Loading,  // a checkpoint or weights from a file
  Loss,     // cross entropy, a head of the vocabulary's width
  Attention,
  Generation,
  Gathering,     // predictions of an evaluation put together
  DataParallel,  // one process, many devices
  Distributed,   // a process for each device
  PinnedMemory,
  LoaderWorker,
  Moving,  // a module or tensor to the device
  FirstStep,
  LaterStep,
  DeviceAssert,  // an index or class number out of range, told by the device
  RetainGraph,   // retain_graph, create_graph
  Windows,
  Count,
};

class Signs {
 public:
  // `code` is the line of source where the traceback shows it; may be empty. Innermost frames first: the first wins.
  void look_at_frame(const trace::Frame& frame, std::string_view code);
  // A line that the program printed.
  void look_at_line(std::string_view line);

  // "valid.py:88 validate"; empty: not seen.
  const std::string& where(Sign sign) const { return seen_[static_cast<std::size_t>(sign)]; }
  bool has(Sign sign) const { return !where(sign).empty(); }

 private:
  void set(Sign sign, std::string words);
  std::array<std::string, static_cast<std::size_t>(Sign::Count)> seen_;
};

Signs signs_of(const trace::OutOfMemory& message);
Signs signs_of(const trace::Stacks& stacks, trace::StackId stack);

// The letters of ASCII as small ones.
std::string lower(std::string_view text);

// The last two components of a path and the line: "nets/model.py:42 forward".
std::string place(const trace::Frame& frame);

}  // namespace ullage::diagnose
