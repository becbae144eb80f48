// SPDX-License-Identifier: Apache-2.0
#include "program/progress.h"

#include "ullage/base/sizes.h"

#include <cstdio>
#include <ostream>

namespace ullage::program {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{100};
constexpr std::chrono::milliseconds kElsewhere{5000};

}  // namespace

std::string to_string(const Pace& pace) {
  std::string text;
  if (pace.budgeted) {
    text += "  " + ullage::to_string(pace.resident);
    if (pace.budget > Bytes{}) text += " of " + ullage::to_string(pace.budget);
  }
  if (pace.left > Seconds{0}) text += "  " + ullage::to_string(pace.left) + " left";
  return text;
}

std::string loss_text(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", loss);
  return text;
}

void Progress::show(const std::string& line, bool last) {
  const auto now = Clock::now();
  if (shown_ && !last && now - last_shown_ < (terminal_ ? kOnTerminal : kElsewhere)) return;
  shown_ = true;
  last_shown_ = now;
  if (terminal_) {
    out_ << "\r" << line << "\x1b[K" << std::flush;  // the rest of an older, longer line is erased
    line_open_ = true;
  } else {
    out_ << line << "\n" << std::flush;
  }
}

void Progress::say(const std::string& line) {
  if (line_open_) out_ << "\n";
  line_open_ = false;
  out_ << line << "\n" << std::flush;
}

}  // namespace ullage::program
