// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far a run is: one line that is rewritten on a terminal, one line every few seconds elsewhere.

#include "dcgan/run_folder.h"
#include "ullage/base/bytes.h"

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace ullage::dcgan {

struct ProgressState {
  std::uint64_t step = 0;
  std::uint64_t last_step = 0;  // as far as known; an estimate when epochs decide
  Losses losses;
  bool budgeted = false;  // a pool stands behind the run, the next two are known
  Bytes resident;
  Bytes budget;  // zero: unlimited
  Seconds left;  // below zero: not known yet
};

// "step 12/100  D 0.5312  G 3.2101  1.85 of 2.00 GiB  3 min 20 s left"
std::string progress_line(const ProgressState& state);

class Progress final {
 public:
  // `out` outlives this. `terminal`: rewrite one line.
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void show(const ProgressState& state);
  // A line of its own, for what a person should read.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& out_;
  bool terminal_;
  bool line_open_ = false;
  bool shown_ = false;
  Clock::time_point last_shown_;
};

}  // namespace ullage::dcgan
