// SPDX-License-Identifier: Apache-2.0
#include "dcgan/progress.h"

#include "ullage/base/sizes.h"

#include <cstdio>
#include <ostream>

namespace ullage::dcgan {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{100};
constexpr std::chrono::milliseconds kElsewhere{5000};

}  // namespace

std::string progress_line(const ProgressState& state) {
  char text[128];
  std::snprintf(text, sizeof text, "step %llu/%llu  D %.4f  G %.4f", static_cast<unsigned long long>(state.step),
                static_cast<unsigned long long>(state.last_step), state.losses.loss_d, state.losses.loss_g);
  std::string line = text;
  if (state.budgeted) {
    line += "  " + to_string(state.resident);
    if (state.budget > Bytes{}) line += " of " + to_string(state.budget);
  }
  if (state.left.count >= 0 && state.step < state.last_step) line += "  " + to_string(state.left) + " left";
  return line;
}

void Progress::show(const ProgressState& state) {
  const auto now = Clock::now();
  if (shown_ && state.step < state.last_step && now - last_shown_ < (terminal_ ? kOnTerminal : kElsewhere)) return;
  shown_ = true;
  last_shown_ = now;
  if (terminal_) {
    out_ << "\r" << progress_line(state) << "\x1b[K" << std::flush;  // the rest of an older, longer line is erased
    line_open_ = true;
  } else {
    out_ << progress_line(state) << "\n" << std::flush;
  }
}

void Progress::say(const std::string& line) {
  if (line_open_) out_ << "\n";
  line_open_ = false;
  out_ << line << "\n" << std::flush;
}

}  // namespace ullage::dcgan
