// SPDX-License-Identifier: Apache-2.0
#include "program/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ullage::program {
namespace {

TEST(Progress, RewritesOneLineOnATerminal) {
  std::ostringstream out;
  Progress progress(out, true);
  progress.show("one", false);
  progress.show("hundred", true);
  progress.say("done");
  EXPECT_EQ(out.str(), "\rone\x1b[K\rhundred\x1b[K\ndone\n");
}

TEST(Progress, WritesPlainLinesRarelyElsewhere) {
  std::ostringstream out;
  Progress progress(out, false);
  for (int step = 1; step <= 100; ++step) progress.show(std::to_string(step), step == 100);
  EXPECT_EQ(out.str(), "1\n100\n") << "the first and the last";
}

}  // namespace
}  // namespace ullage::program
