// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/prompts.h"

#include <gtest/gtest.h>

#include <utility>

namespace ullage::vqgan_clip {
namespace {

constexpr double kNoStop = -std::numeric_limits<double>::infinity();

Prompt only(const std::string& text) {
  const auto story = parse_story(text);
  EXPECT_TRUE(story) << story.error().text();
  EXPECT_EQ(story->size(), 1u) << text;
  EXPECT_EQ(story->front().size(), 1u) << text;
  return story->front().front();
}

TEST(Prompts, HaveWeightAndStopBehindTheirLastColons) {
  EXPECT_EQ(only("a cat"), (Prompt{"a cat", 1, kNoStop}));
  EXPECT_EQ(only("a cat:0.5"), (Prompt{"a cat", .5, kNoStop}));
  EXPECT_EQ(only("a cat:-1:-0.2"), (Prompt{"a cat", -1, -.2}));
  EXPECT_EQ(only("  a cat : +2e-1 : -inf "), (Prompt{"a cat", .2, kNoStop}));
}

TEST(Prompts, MayHoldColonsWhereBothFiguresFollow) {
  EXPECT_EQ(only("art: a cat: sitting:2:0.5"), (Prompt{"art: a cat: sitting", 2, .5}));
  EXPECT_EQ(only("16:9:1:-inf"), (Prompt{"16:9", 1, kNoStop}));
}

TEST(Prompts, AreWrittenAsTheyAreRead) {
  const std::string text = "a cat|16:9:1:-inf|snow:0.5|rain:-0.3:0.25";
  EXPECT_EQ(to_string(parse_story(text)->front()), text);
}

TEST(Prompts, AreSeparatedAndFollowEachOther) {
  const std::vector<Phrase> wanted = {{{"a", 1, kNoStop}, {"b", 2, kNoStop}}, {{"c", 1, kNoStop}}};
  EXPECT_EQ(*parse_story("a|b:2^ c"), wanted);
}

TEST(Prompts, OfImagesMayHoldACircumflex) {
  EXPECT_EQ(*parse_image_prompts("a^1.png:0.5 | b.jpg"), (Phrase{{"a^1.png", .5, kNoStop}, {"b.jpg", 1, kNoStop}}));
}

TEST(Prompts, SayWhichOfThemDoesNotWork) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "prompt '' is empty"},
      {"a||b", "prompt '' is empty"},
      {"a^", "prompt '' is empty"},
      {":1", "prompt ':1' is empty"},
      {"a: b",
       "'a: b': the weight 'b' is not a number; if the text has a colon, give weight and stop after "
       "it: 'a: b:1:-inf'"},
      {"x: y:1", "the weight 'y' is not a number"},
      {"a:", "the weight '' is not a number"},
      {"a:inf", "the weight 'inf' is not"},
      {"a:nan", "the weight 'nan' is not"},
      {"a:1:x", "the stop 'x' is not a number or -inf"},
      {"a:1:inf", "the stop 'inf' is not"},
      {"a:+-1", "the weight '+-1' is not"},
  };
  for (const auto& [text, said] : cases) {
    const auto parsed = parse_story(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text().find(said), std::string::npos) << parsed.error().text();
    EXPECT_TRUE(parsed.error().text().starts_with("--prompts: ")) << parsed.error().text();
  }
  EXPECT_TRUE(parse_image_prompts("").error().text().starts_with("--image-prompts: "));
}

}  // namespace
}  // namespace ullage::vqgan_clip
