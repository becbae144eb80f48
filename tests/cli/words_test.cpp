// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/words.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Nearest, AllowsAFewSlipsAndNoMore) {
  const Words verbs = {"run", "help", "explain"};
  EXPECT_EQ(nearest("rnu", verbs), "run");  // two letters swapped
  EXPECT_EQ(nearest("hepl", verbs), "help");
  EXPECT_EQ(nearest("explan", verbs), "explain");
  EXPECT_EQ(nearest("xpalin", verbs), "explain");  // two slips in six letters
  EXPECT_FALSE(nearest("dcgan", verbs));
  EXPECT_FALSE(nearest("", verbs));
  EXPECT_FALSE(nearest("x", {}));
}

class SplitWords : public testing::Test {
 protected:
  SplitWords() {
    verb_.add_option("--memory", memory_)->type_name("SIZE");
    verb_.add_flag("--quiet", quiet_);
  }
  Result<Split> split(const Words& words) { return split_words(verb_, words); }

  CLI::App verb_{"", "run"};
  std::string memory_;
  bool quiet_ = false;
};

TEST_F(SplitWords, OptionsBeforeTheTargetAreOurs) {
  const auto got = split({"--memory", "2GiB", "--quiet", "dcgan", "--memory", "9"});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->options, (Words{"--memory", "2GiB", "--quiet"}));
  EXPECT_EQ(got->target, (Words{"dcgan", "--memory", "9"}));
}

TEST_F(SplitWords, AllBehindTheDashesIsTheCommandsEvenDashesAndHelp) {
  const auto got = split({"--memory=2GiB", "--", "ls", "--help", "--", "-x"});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->options, (Words{"--memory=2GiB"}));
  EXPECT_EQ(got->target, (Words{"--", "ls", "--help", "--", "-x"}));
}

TEST_F(SplitWords, AValueMayLookLikeAnything) {
  const auto got = split({"--memory", "--", "dcgan"});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->options, (Words{"--memory", "--"}));
  EXPECT_EQ(got->target, (Words{"dcgan"}));
}

TEST_F(SplitWords, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(split({"--quite", "dcgan"}).error().text().find("did you mean '--quiet'?"), std::string::npos);
  EXPECT_NE(split({"--spill=x", "dcgan"}).error().text().find("unknown option --spill"), std::string::npos);
  EXPECT_NE(split({"--memory"}).error().text().find("needs a value (SIZE)"), std::string::npos);
}

TEST_F(SplitWords, AnOptionBehindACommandIsToldHowToReachIt) {
  const auto refused = gather_words(verb_, {"/bin/sh", "--image-size", "256"}, Commands::Run);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().text(), "unknown option --image-size; to give it to the command, write -- before /bin/sh");
  EXPECT_EQ(gather_words(verb_, {"run.ullage", "--image-size", "256"}, Commands::Run).error().text(),
            "unknown option --image-size");
}

TEST_F(SplitWords, AVerbWithoutCommandsSaysNothingOfOne) {
  EXPECT_EQ(gather_words(verb_, {"/bin/sh", "--image-size", "256"}, Commands::None).error().text(),
            "unknown option --image-size");
}

TEST_F(SplitWords, NothingGivenIsNothing) {
  const auto got = split({});
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(got->options.empty() && got->target.empty());
}

}  // namespace
}  // namespace ullage::cli
