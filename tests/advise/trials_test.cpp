// SPDX-License-Identifier: Apache-2.0
#include "ullage/advise/trials.h"

#include "../folders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace ullage::advise {
namespace {

// What a training of a transformer with Adam on a card does.
Facts training() {
  Facts facts;
  facts.network = {{"train.py", 40}, "Net", "cuda"};
  facts.optimizer = {{"train.py", 20}, "AdamW", true, true, std::nullopt, std::nullopt, "cuda"};
  facts.repeated_layers = {{"model.py", 7}, "Block", 12, false};
  return facts;
}

Setting card() { return {.on_card = true, .has_bfloat16 = true, .allocator = ""}; }

std::vector<std::string> ids(const std::vector<Trial>& trials) {
  std::vector<std::string> all;
  for (const Trial& one : trials) all.push_back(one.id);
  return all;
}

const Trial& find(const std::vector<Trial>& trials, const std::string& id) {
  const auto found = std::ranges::find(trials, id, &Trial::id);
  EXPECT_NE(found, trials.end()) << id;
  return *found;
}

bool has(const std::vector<Trial>& trials, const std::string& id) {
  return std::ranges::find(trials, id, &Trial::id) != trials.end();
}

TEST(Trials, ATrainingOnACard) {
  EXPECT_EQ(ids(trials_for(training(), card())),
            (std::vector<std::string>{"gradient_checkpointing", "half_precision", "expandable_segments",
                                      "foreach_false", "fused_optimizer", "max_split_size_mb"}));
}

TEST(Trials, WhatTheProgramDoesAlreadyIsLeftOut) {
  Facts facts = training();
  facts.autocast = Place{"train.py", 39};
  facts.checkpoint = Place{"model.py", 7};
  facts.optimizer->foreach = false;
  Setting setting = card();
  setting.allocator = "expandable_segments:True";
  EXPECT_TRUE(trials_for(facts, setting).empty());
}

TEST(Trials, MallocIsSetOnTheCpuAlone) {
  EXPECT_FALSE(has(trials_for(training(), card()), "lean_malloc"));
  const Trial trial = find(trials_for(training(), {}), "lean_malloc");
  EXPECT_TRUE(trial.is_plain);
  EXPECT_EQ(trial.effect, Effect::SameBits);
  EXPECT_EQ(trial.action, "export MALLOC_MMAP_THRESHOLD_=131072");
  Setting setting;
  setting.sets_malloc = true;
  EXPECT_FALSE(has(trials_for(training(), setting), "lean_malloc"));
  EXPECT_FALSE(has(trials_for({}, {}), "lean_malloc"));
}

TEST(Trials, ProgramsWithHalfWeightsNeedNoAutocast) {
  Facts facts = training();
  facts.has_half_weights = true;
  EXPECT_FALSE(has(trials_for(facts, card()), "half_precision"));
}

TEST(Trials, OnTheCpuThereAreNoSettingsOfTheCardsAllocator) {
  Facts facts = training();
  facts.network->device = facts.optimizer->device = "cpu";
  EXPECT_EQ(ids(trials_for(facts, {.on_card = false, .has_bfloat16 = true, .allocator = ""})),
            (std::vector<std::string>{"gradient_checkpointing", "half_precision", "lean_malloc"}));
}

TEST(Trials, AnOldCardComputesInFloat16WithAScaler) {
  Setting setting = card();
  setting.has_bfloat16 = false;
  const std::vector<Trial> trials = trials_for(training(), setting);
  const Trial& half = find(trials, "half_precision");
  EXPECT_EQ(half.switches, "autocast=float16");
  EXPECT_NE(half.action.find("GradScaler"), std::string::npos);
}

TEST(Trials, AnOwnAutocastThatIsOffIsSwitchedOn) {
  Facts facts = training();
  facts.autocast_off = Place{"train.py", 39};
  const Trial half = find(trials_for(facts, card()), "half_precision");
  EXPECT_EQ(half.switches, "own_autocast=bfloat16");
  EXPECT_EQ(half.place.line, 39);
  EXPECT_NE(half.action.find("own autocast on"), std::string::npos) << half.action;
}

TEST(Trials, AttentionThatKeepsItsMatrix) {
  Facts facts = training();
  EXPECT_FALSE(has(trials_for(facts, card()), "fused_attention"));
  facts.math_attention = Place{"model.py", 30};
  const std::vector<Trial> trials = trials_for(facts, card());
  EXPECT_EQ(find(trials, "fused_attention").place.line, 30);
}

TEST(Trials, BatchNormInACheckpointedLayerChangesTheResult) {
  Facts facts = training();
  EXPECT_EQ(find(trials_for(facts, card()), "gradient_checkpointing").effect, Effect::SameBits);
  facts.repeated_layers->has_batch_norm = true;
  EXPECT_EQ(find(trials_for(facts, card()), "gradient_checkpointing").effect, Effect::Different);
}

TEST(Trials, AnAllocatorsSettingKeepsWhatIsSetAlready) {
  Setting setting = card();
  setting.allocator = "garbage_collection_threshold:0.8";
  EXPECT_EQ(find(trials_for({}, setting), "expandable_segments").allocator,
            "garbage_collection_threshold:0.8,expandable_segments:True");
}

TEST(Trials, TogetherHasAllOfThem) {
  const std::vector<Trial> trials = trials_for(training(), card());
  const Trial both = together(std::vector{find(trials, "expandable_segments"), find(trials, "gradient_checkpointing"),
                                          find(trials, "half_precision")});
  EXPECT_EQ(both.id, "expandable_segments+gradient_checkpointing+half_precision");
  EXPECT_EQ(both.switches, "checkpoint autocast=bfloat16");
  EXPECT_EQ(both.allocator, "expandable_segments:True");
  EXPECT_EQ(both.if_refused, "float_outputs");
  EXPECT_EQ(both.effect, Effect::Rounding);
}

// Someone who adds a row to the table also tells people of it.
TEST(Trials, EachIsInTheDocs) {
  std::ifstream in(tests_folder() / "../docs/advise.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const std::string_view id : remedy_ids()) {
    EXPECT_NE(page.find("| `" + std::string(id) + "` |"), std::string::npos) << id;
  }
}

TEST(SmallerSizeTest, ABatchIsDividedAndOtherSizesAreNot) {
  EXPECT_EQ(smaller_size({"batch", 64}, 50),
            "batch=32, and for a step of 64 as before: add up the gradients of 2 batches, each loss divided by 2");
  EXPECT_EQ(smaller_size({"batch_size", 7}, 5), "batch_size=5 in place of 7");
  EXPECT_EQ(smaller_size({"side", 512}, 256), "side=256 in place of 512");
}

}  // namespace
}  // namespace ullage::advise
