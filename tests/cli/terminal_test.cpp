// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/terminal.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ullage::cli {
namespace {

report::TerminalStyle style(bool terminal, unsigned columns, const std::map<std::string, std::string>& variables) {
  return terminal_style(terminal, columns, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(TerminalStyle, ColorsOnlyOnATerminalThatWantsThem) {
  EXPECT_TRUE(style(true, 80, {}).colors);
  EXPECT_TRUE(style(true, 80, {{"NO_COLOR", ""}, {"TERM", "xterm"}}).colors);
  EXPECT_FALSE(style(true, 80, {{"NO_COLOR", "1"}}).colors);
  EXPECT_FALSE(style(true, 80, {{"TERM", "dumb"}}).colors);
  EXPECT_FALSE(style(false, 80, {}).colors);
}

TEST(TerminalStyle, TheFirstVariableThatIsSetTellsTheEncoding) {
  EXPECT_TRUE(style(true, 80, {{"LANG", "de_DE.UTF-8"}}).unicode);
  EXPECT_TRUE(style(true, 80, {{"LC_ALL", ""}, {"LC_CTYPE", "en_US.utf8"}, {"LANG", "C"}}).unicode);
  EXPECT_FALSE(style(true, 80, {{"LC_ALL", "C"}, {"LANG", "C.UTF-8"}}).unicode);
  EXPECT_FALSE(style(true, 80, {}).unicode);
}

TEST(TerminalStyle, TakesTheWidthOfTheTerminalElseOfTheEnvironment) {
  EXPECT_EQ(style(true, 132, {{"COLUMNS", "60"}}).width, 132u);
  EXPECT_EQ(style(false, 0, {{"COLUMNS", "60"}}).width, 60u);
  EXPECT_EQ(style(false, 0, {{"COLUMNS", "wide"}}).width, 80u);
  EXPECT_EQ(style(false, 0, {}).width, 80u);
}

}  // namespace
}  // namespace ullage::cli
