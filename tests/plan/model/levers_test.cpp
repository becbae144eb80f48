// SPDX-License-Identifier: Apache-2.0
// The table of levers, and its agreement with the docs.
#include "ullage/plan/model/levers.h"

#include "folders.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ullage::plan {
namespace {

std::string doc(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(tests_folder().parent_path() / "docs" / name).rdbuf();
  return text.str();
}

TEST(Levers, HaveOneWordEach) {
  for (const Lever& lever : kLevers) {
    EXPECT_STREQ(word_of(lever.on), lever.word);
    EXPECT_EQ(lever.by_default, Levers{}.*lever.on) << lever.word;
    Levers levers = kNoLevers;
    EXPECT_FALSE(levers.*lever.on) << lever.word;
    EXPECT_TRUE(turn_on(lever.word, levers));
    for (const Lever& other : kLevers) EXPECT_EQ(levers.*other.on, other.on == lever.on) << lever.word << other.word;
  }
  Levers levers = kNoLevers;
  EXPECT_FALSE(turn_on("batch norm", levers));
  EXPECT_EQ(sizeof(Levers), kLevers.size()) << "a lever is not in the table";
}

// The table in docs/plan.md has a row for each lever, in the same order, and no other row.
TEST(Levers, AreThoseOfTheDocs) {
  std::istringstream lines(doc("plan.md"));
  std::string line;
  while (std::getline(lines, line) && !line.starts_with("| lever |")) {
  }
  ASSERT_TRUE(line.ends_with("| results | without `--levers` |")) << line;
  std::getline(lines, line);
  for (const Lever& lever : kLevers) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with("| `" + std::string(lever.word) + "` |")) << line;
    const std::string end =
        std::string("| ") + word_of(lever.results) + (lever.by_default ? " | used |" : " | not used |");
    EXPECT_TRUE(line.ends_with(end)) << line;
  }
  std::getline(lines, line);
  EXPECT_EQ(line, "") << "a lever that is none";
}

TEST(Levers, AreThoseOfTheCommandsContract) {
  std::string option, json;
  for (const Lever& lever : kLevers) {
    option += (option.empty() ? "`" : ", `") + std::string(lever.word) + "`";
    json += (json.empty() ? "\"" : "|\"") + std::string(lever.word) + "\"";
  }
  const std::string text = doc("cli.md");
  EXPECT_NE(text.find("- `--levers A,B,...`: only these of " + option + "."), std::string::npos);
  EXPECT_NE(text.find("\"lever\":" + json + ","), std::string::npos);
}

}  // namespace
}  // namespace ullage::plan
