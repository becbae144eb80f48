// SPDX-License-Identifier: Apache-2.0
#include "dcgan/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ullage::dcgan {
namespace {

ProgressState at(std::uint64_t step) {
  ProgressState state;
  state.step = step;
  state.last_step = 100;
  state.losses = {0.53124, 3.2101, 0, 0, 0};
  state.left = Seconds{200};
  return state;
}

TEST(ProgressLine, SaysStepLossesMemoryAndTimeLeft) {
  ProgressState state = at(12);
  EXPECT_EQ(progress_line(state), "step 12/100  D 0.5312  G 3.2101  3 min 20 s left");
  state.budgeted = true;
  state.resident = 1800_MiB;
  EXPECT_EQ(progress_line(state), "step 12/100  D 0.5312  G 3.2101  1.75 GiB  3 min 20 s left");
  state.budget = 2_GiB;
  EXPECT_EQ(progress_line(state), "step 12/100  D 0.5312  G 3.2101  1.75 GiB of 2.00 GiB  3 min 20 s left");
  state.step = 100;
  EXPECT_EQ(progress_line(state), "step 100/100  D 0.5312  G 3.2101  1.75 GiB of 2.00 GiB");
}

TEST(Progress, RewritesOneLineOnATerminal) {
  std::ostringstream out;
  Progress progress(out, true);
  progress.show(at(1));
  progress.show(at(100));
  progress.say("done");
  EXPECT_EQ(out.str(), "\r" + progress_line(at(1)) + "\x1b[K\r" + progress_line(at(100)) + "\x1b[K\ndone\n");
}

TEST(Progress, WritesPlainLinesRarelyElsewhere) {
  std::ostringstream out;
  Progress progress(out, false);
  for (std::uint64_t step = 1; step <= 100; ++step) progress.show(at(step));
  EXPECT_EQ(out.str(), progress_line(at(1)) + "\n" + progress_line(at(100)) + "\n") << "the first and the last";
}

}  // namespace
}  // namespace ullage::dcgan
