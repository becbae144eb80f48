// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/allowance.h"

#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

std::string refusal(const std::string& text) {
  const Result<Allowance> read = parse_allowance(text);
  return read ? "" : read.error().text();
}

TEST(Allowance, ReadsWordsInAnyOrder) {
  const Result<Allowance> plain = parse_allowance("bf16");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->bf16 && !plain->evaluation);
  EXPECT_EQ(plain->words(), std::vector<std::string>{"bf16"});
  EXPECT_EQ(plain->switches("cpu"), "autocast=bfloat16 on=cpu");
  for (const char* text : {"bf16,evaluation", "evaluation,bf16", "bf16,evaluation,bf16"}) {
    const Result<Allowance> both = parse_allowance(text);
    ASSERT_TRUE(both) << text;
    EXPECT_EQ(both->words(), (std::vector<std::string>{"bf16", "evaluation"}));
    EXPECT_EQ(both->switches("cuda"), "autocast=bfloat16 on=cuda evaluation");
  }
  const Result<Allowance> needed = parse_allowance("if-needed,bf16");
  ASSERT_TRUE(needed);
  EXPECT_EQ(needed->words(), (std::vector<std::string>{"bf16", "if-needed"}));
  EXPECT_EQ(needed->switches("cpu"), "autocast=bfloat16 on=cpu if_needed");
  const Result<Allowance> all = parse_allowance("bf16,if-needed,evaluation");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->words(), (std::vector<std::string>{"bf16", "evaluation", "if-needed"}));
}

TEST(Allowance, SaysWhatIsAllowed) {
  for (const char* text : {"", ",", "bf16,", ",bf16", "bf16,,evaluation", "BF16", "bf16 evaluation", "roundings"}) {
    EXPECT_NE(refusal(text).find("give bf16, alone or with more words after commas: evaluation"), std::string::npos)
        << text;
    EXPECT_NE(refusal(text).find("if-needed (casts only if no exact plan that adds 5 % or less to a step fits)"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(refusal("evaluation").find("'evaluation' needs a type beside it"), std::string::npos);
  EXPECT_NE(refusal("if-needed").find("'if-needed' needs a type beside it, as in bf16,if-needed"), std::string::npos);
  EXPECT_NE(refusal("bf16,evalution").find("did you mean 'evaluation'?"), std::string::npos);
  EXPECT_TRUE(refusal("bf1").starts_with("--allow: 'bf1' is not known, did you mean 'bf16'?")) << refusal("bf1");
}

TEST(Allowance, ClassesStandWithoutSingleChanges) {
  const Result<Allowance> both = parse_allowance("different,rounding");
  ASSERT_TRUE(both);
  EXPECT_TRUE(both->names_classes() && !both->bf16);
  EXPECT_EQ(both->words(), (std::vector<std::string>{"rounding", "different"}));
  for (const char* text : {"rounding,bf16", "if-needed,different"})
    EXPECT_NE(refusal(text).find("classes (rounding, different) do not go together with"), std::string::npos) << text;
  EXPECT_NE(refusal("roundin").find("did you mean 'rounding'?"), std::string::npos);
}

TEST(Allowance, RoundingOfAPythonProgramIsBf16IfNeeded) {
  for (const char* text : {"rounding", "rounding,different"}) {
    const Result<Allowance> meant = for_python(*parse_allowance(text));
    ASSERT_TRUE(meant) << text;
    EXPECT_EQ(meant->switches("cpu"), "autocast=bfloat16 on=cpu if_needed");
  }
  const Result<Allowance> single = for_python(*parse_allowance("bf16"));
  ASSERT_TRUE(single);
  EXPECT_FALSE(single->if_needed);
  const Result<Allowance> none = for_python(*parse_allowance("different"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("'different' alone changes nothing in a command"), std::string::npos);
}

TEST(Allowance, PointsToTheLinesThatFp16Needs) {
  for (const char* text : {"fp16", "bf16,fp16", "float16", "half"}) {
    EXPECT_NE(refusal(text).find("scaler.scale(loss).backward() and scaler.step(optimizer); scaler.update()"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace ullage::cli
