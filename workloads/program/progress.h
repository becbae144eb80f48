// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far a run is: one line that is rewritten on a terminal, one line every few seconds elsewhere.

#include "ullage/base/bytes.h"

#include <chrono>
#include <iosfwd>
#include <string>

namespace ullage::program {

// What every program's line ends with.
struct Pace {
  bool budgeted = false;  // a pool stands behind the run, the next two are known
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

  // Seldom enough for a person, but for the first line and the last one.
  void show(const std::string& line, bool last);
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

}  // namespace ullage::program
