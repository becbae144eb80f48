// SPDX-License-Identifier: Apache-2.0
#include "upscale/options.h"

#include "program/option_cases.h"

namespace ullage::upscale {
namespace {

auto parse(const std::string& line, bool rehearsal = false) {
  const program::Words words("ullage-upscale", line);
  return parse_options(words.argc(), words.argv(), rehearsal);
}

TEST(UpscaleOptions, AreRefusedInTheseWords) {
  program::expect_refused("upscale/option_errors.txt", 9, [](const std::string& line) { return parse(line); });
}

TEST(UpscaleOptions, HelpIsAsStated) {
  program::expect_help("upscale/help.txt", [](const std::string& line) { return parse(line); });
}

TEST(UpscaleOptions, HaveTheseDefaults) {
  const auto parsed = parse("--input a.png --model m.pth --out b.png");
  const auto& o = std::get<Options>(parsed);
  EXPECT_EQ(o.input, "a.png");
  EXPECT_EQ(o.model, "m.pth");
  EXPECT_EQ(o.out, "b.png");
  EXPECT_EQ(o.scale, 0);
  EXPECT_EQ(o.tile, 0);
  EXPECT_FALSE(o.force);
}

TEST(UpscaleOptions, NeedOnlyTheModelInARehearsal) {
  EXPECT_TRUE(std::holds_alternative<Options>(parse("--model m.pth", true)));
}

}  // namespace
}  // namespace ullage::upscale
