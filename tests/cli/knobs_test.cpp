// SPDX-License-Identifier: Apache-2.0
// Tests `--vary`, `--at` and the placeholders of a command.
#include "ullage/cli/knobs.h"

#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

using Words = std::vector<std::string>;

std::string error_of(const Words& vary, const Words& at) {
  const Result<Knobs> knobs = read_knobs(vary, at);
  return knobs ? "" : knobs.error().text();
}

TEST(Knobs, ReadsSizesAndTarget) {
  const Result<Knobs> knobs = read_knobs({"batch=2,3,4", "size=32,48,64,80"}, {"size=256", "batch=128"});
  ASSERT_TRUE(knobs) << knobs.error().text();
  EXPECT_EQ(as_text(knobs->grid), "batch=2,3,4;size=32,48,64,80");
  EXPECT_EQ(in_words(knobs->at), "batch 128, size 256");  // in the order of the axes
  EXPECT_FALSE(knobs->below);
}

TEST(Knobs, ChoosesSizesWhereNoneAreStated) {
  const Result<Knobs> knobs = read_knobs({"batch"}, {"batch=128"});
  ASSERT_TRUE(knobs) << knobs.error().text();
  EXPECT_EQ(as_text(knobs->grid), "batch=2,3,4");
}

TEST(Knobs, ATargetBelowTheSizesThatUllageWouldChooseIsRunItself) {
  const Result<Knobs> knobs = read_knobs({"batch"}, {"batch=1"});
  ASSERT_TRUE(knobs) << knobs.error().text();
  EXPECT_TRUE(knobs->below);
}

TEST(Knobs, ATargetBelowStatedSizesIsRefusedBesideOneBelowChosenSizes) {
  EXPECT_EQ(error_of({"batch", "size=64,96,128"}, {"batch=1", "size=32"}),
            "--at: size 32 is below 64, the smallest size of --vary: smaller sizes are not predicted from larger ones; "
            "run it, or vary smaller sizes");
}

TEST(Knobs, ATargetAmongTheSizesIsOne) { EXPECT_EQ(error_of({"batch=2,3,4"}, {"batch=2"}), ""); }

TEST(Knobs, SaysWhatIsWrongWithBothFiguresAndWhatToDo) {
  EXPECT_EQ(error_of({"batch=2,3,4"}, {}), "--vary: the size to predict is missing: add --at batch=SIZE");
  EXPECT_EQ(error_of({}, {"batch=128"}), "--at: batch is not varied: add --vary batch");
  EXPECT_EQ(error_of({"batch=2,3,4", "batch"}, {"batch=5"}), "--vary: knob batch is named twice");
  EXPECT_EQ(error_of({"batch"}, {"batch=5", "batch=6"}), "--at: knob batch is named twice");
  EXPECT_EQ(error_of({"batch=2,3"}, {"batch=5"}),
            "--vary: batch has 2 sizes, at least 3 are needed: two to fit and one to check; or write batch alone");
  EXPECT_EQ(error_of({"batch=2,4,3"}, {"batch=5"}),
            "--vary: 3 after 4: write the sizes of batch in ascending order, each once");
  EXPECT_EQ(error_of({"batch=2,2,3"}, {"batch=5"}),
            "--vary: 2 after 2: write the sizes of batch in ascending order, each once");
  EXPECT_EQ(
      error_of({"batch=4,6,8"}, {"batch=3"}),
      "--at: batch 3 is below 4, the smallest size of --vary: smaller sizes are not predicted from larger ones; run "
      "it, or vary smaller sizes");
  EXPECT_EQ(error_of({"a", "b", "c"}, {"a=5", "b=5", "c=5"}),
            "--vary: there are 3 knobs, at most 2 can be varied at once");
}

TEST(Knobs, RefusesWhatIsNoSize) {
  for (const char* size : {"0", "-2", "2.5", "", "x", "0x10", "1099511627777", "99999999999999999999", "2 "}) {
    EXPECT_EQ(error_of({"batch"}, {std::string("batch=") + size}),
              std::string("--at: '") + size + "' is not a size: write a whole number from 1 to 1099511627776");
    EXPECT_NE(error_of({std::string("batch=2,3,") + size}, {"batch=5"}), "") << size;
  }
  EXPECT_EQ(error_of({"batch"}, {"batch"}), "--at: 'batch' is not NAME=SIZE, as batch=128 is");
  EXPECT_EQ(error_of({"=2,3,4"}, {"batch=5"}), "--vary: '=2,3,4' is not NAME or NAME=A,B,C");
  EXPECT_EQ(error_of({"{batch}"}, {"batch=5"}), "--vary: '{batch}' is not NAME or NAME=A,B,C");
}

TEST(Knobs, FillsPlaceholdersAndNothingElse) {
  const std::vector<Knob> knobs = {{"batch", 128}, {"size", 64}};
  EXPECT_EQ(fill("--batch={batch}", knobs), "--batch=128");
  EXPECT_EQ(fill("{batch}x{size}", knobs), "128x64");
  EXPECT_EQ(fill("{{batch}}", knobs), "{batch}");
  EXPECT_EQ(fill("{\"n\":{batch}}", knobs), "{\"n\":128}");
  EXPECT_EQ(fill("{print $1} {other} {", knobs), "{print $1} {other} {");
  EXPECT_EQ(fill("{batch", knobs), "{batch");
  EXPECT_EQ(fill("", knobs), "");
}

TEST(Knobs, EveryKnobMustStandInTheCommand) {
  const std::vector<Knob> knobs = {{"batch", 128}};
  EXPECT_TRUE(check_placeholders({"train", "--batch={batch}"}, knobs));
  const Status none = check_placeholders({"train", "{{batch}}"}, knobs);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "--vary: {batch} is in no word of the command: write it where the size of batch stands");
}

TEST(Knobs, PointsOfAGridAreInItsOrder) {
  std::string all;
  for (const auto& point : points({{{"a", {1, 2, 3}}, {"b", {7, 8, 9}}}})) all += in_words(point) + "; ";
  EXPECT_EQ(all, "a 1, b 7; a 1, b 8; a 1, b 9; a 2, b 7; a 2, b 8; a 2, b 9; a 3, b 7; a 3, b 8; a 3, b 9; ");
}

}  // namespace
}  // namespace ullage::cli
