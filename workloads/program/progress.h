// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shows how far a run is: on a terminal one line that is rewritten, elsewhere a new line every few seconds.

#include "ullage/base/bytes.h"

#include <chrono>
#include <iosfwd>
#include <string>

namespace ullage::program {

// The end of every program's progress line.
struct Pace {
  bool budgeted = false;  // the run has a pool; `resident` and `budget` are valid
  Bytes resident;
  Bytes budget;  // zero: unlimited
  Seconds left;  // zero: nothing is left; below zero: not known yet
};

// "  1.85 GiB of 2.00 GiB  3 min 20 s left"
std::string to_string(const Pace& pace);

// "0.0312"
std::string loss_text(double loss);

class Progress final {
 public:
  // `out` outlives this. `terminal`: rewrite one line.
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  // Shows the line unless one was shown a short time ago (0.1 s on a terminal, 5 s elsewhere). Always shows the first
  // and the last.
  void show(const std::string& line, bool last);
  // Prints a message on a line of its own, always.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& out_;
  bool terminal_;
  bool line_open_ = false;
  bool shown_ = false;
  Clock::time_point last_shown_;
};

}  // namespace ullage::program
