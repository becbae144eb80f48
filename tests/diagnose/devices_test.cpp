// SPDX-License-Identifier: Apache-2.0

// Recordings of several devices, and where in the program a refused request was made.

#include "check.h"
#include "recordings.h"

#include "ullage/diagnose/request_place.h"

#include <gtest/gtest.h>

namespace ullage::diagnose {
namespace {

// Three cards under DataParallel; the second one fails.
class ThreeCards : public testing::Test {
 protected:
  ThreeCards() {
    maker.allocate(100_MiB, module);
    maker.use_device(1);
    maker.allocate(100_MiB, module);
    maker.allocate(2900_MiB, replica);
    maker.fail(500_MiB, 10_MiB, replica);
    maker.use_device(2);
    maker.allocate(110_MiB, module);
  }

  RecordingMaker maker;
  const trace::StackId module = maker.stack({{"torch/nn/modules/module.py", "_apply"}, {"train.py", "main"}});
  const trace::StackId replica = maker.stack({{"/x/site-packages/torch/nn/modules/conv.py", "forward"},
                                              {"nets/model.py", "forward"},
                                              {"/x/site-packages/torch/nn/modules/module.py", "_call_impl"},
                                              {"/x/site-packages/torch/nn/parallel/parallel_apply.py", "_worker"},
                                              {"train.py", "train_step"},
                                              {"train.py", "main"}});
};

TEST_F(ThreeCards, BeginWithTheOneThatFailed) {
  const std::vector<Diagnosis> all = sound(diagnose(maker.recording(), {"x.pickle", {}, {}}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].facts.device, 1u);
  EXPECT_EQ(all[1].facts.device, 0u);
  EXPECT_EQ(all[2].facts.device, 2u);
  EXPECT_EQ(all[0].headline.find("GPU 1 refused 500.00 MiB"), 0u) << all[0].headline;
  EXPECT_NE(all[1].headline.find("nothing failed here, GPU 1 refused 500.00 MiB"), std::string::npos)
      << all[1].headline;
}

TEST_F(ThreeCards, SayWhatEachOfThemHeld) {
  const std::vector<Diagnosis> all = sound(diagnose(maker.recording(), {"x.pickle", {}, {}}));
  for (const Diagnosis& diagnosis : all) {
    ASSERT_EQ(diagnosis.devices.size(), 3u);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(diagnosis.devices[i].device, i);
    EXPECT_EQ(diagnosis.devices[0].live_peak, 100_MiB);
    EXPECT_EQ(diagnosis.devices[1].live_peak, 3000_MiB);
    EXPECT_EQ(diagnosis.devices[1].refused, 500_MiB);
    EXPECT_EQ(diagnosis.devices[2].live_peak, 110_MiB);
    EXPECT_FALSE(diagnosis.devices[2].refused);
  }
  const Cause* uneven = cause(all[0], "uneven_devices");
  ASSERT_TRUE(uneven);
  EXPECT_NE(uneven->evidence[0].find("31.8 times as much"), std::string::npos) << uneven->evidence[0];
  EXPECT_TRUE(remedy(all[0], "even_shares"));
  EXPECT_TRUE(remedy(all[0], "distributed"));
  EXPECT_FALSE(cause(all[0], "dataparallel_first_card")) << "it is not the first one that failed";
  EXPECT_FALSE(cause(all[1], "uneven_devices")) << "nothing failed there";
}

TEST_F(ThreeCards, WhereOneWasAskedForAreStillComparedWithTheOthers) {
  const std::vector<Diagnosis> second = sound(diagnose(maker.recording(), {"x.pickle", 1, {}}));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_TRUE(cause(second[0], "uneven_devices"));
  EXPECT_TRUE(sound(diagnose(maker.recording(), {"x.pickle", 7, {}})).empty());
  const std::vector<Diagnosis> failed = sound(diagnose(maker.recording(), {"x.pickle", {}, trace::At::OutOfMemory}));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].devices.size(), 3u);
}

TEST_F(ThreeCards, TheLatestFailureIsTheFirst) {
  maker.fail(50_MiB, 10_MiB, module);  // on the third, after the second's
  const std::vector<Diagnosis> all = sound(diagnose(maker.recording(), {"x.pickle", {}, {}}));
  EXPECT_EQ(all[0].facts.device, 2u);
  EXPECT_EQ(all[1].facts.device, 1u);
  EXPECT_EQ(all[2].facts.device, 0u);
}

TEST_F(ThreeCards, SayWhereTheRequestWasMade) {
  const std::vector<Diagnosis> all = sound(diagnose(maker.recording(), {"x.pickle", {}, {}}));
  ASSERT_TRUE(all[0].place);
  EXPECT_EQ(all[0].place->layer, "nets/model.py:7 forward");
  EXPECT_EQ(all[0].place->line, "train.py:7 train_step");
  EXPECT_EQ(all[0].place->phase, trace::Phase::Forward);
  EXPECT_EQ(all[0].asked_by, "nets/model.py:7 forward, called by train.py:7 train_step, in the forward phase");
  EXPECT_FALSE(all[1].place) << "nothing was refused there";
}

TEST(OneCard, IsNotCompared) {
  RecordingMaker maker;
  maker.fail(500_MiB, 10_MiB, maker.stack({{"train.py", "main"}}));
  const Diagnosis diagnosis = sound(diagnose(maker.recording(), {"x.pickle", {}, {}})).at(0);
  EXPECT_TRUE(diagnosis.devices.empty());
  EXPECT_FALSE(cause(diagnosis, "uneven_devices"));
  EXPECT_EQ(diagnosis.asked_by, "train.py:7 main");
}

std::optional<Place> place_of_frames(const std::vector<trace::Frame>& frames) {
  std::vector<const trace::Frame*> pointers;
  for (const trace::Frame& frame : frames) pointers.push_back(&frame);
  return request_place(pointers, trace::Phase::Unknown);
}

TEST(RequestPlace, IsTheInnermostForwardAndTheLineThatCalledTheOutermost) {
  const auto found = place_of_frames({{"/x/site-packages/torch/nn/functional.py", "softmax", 9},
                                      {"/home/me/nets/attention.py", "Attention.forward", 31},
                                      {"/x/site-packages/torch/nn/modules/module.py", "_call_impl", 1},
                                      {"/home/me/nets/model.py", "Model.forward", 80},
                                      {"/home/me/train.py", "train_step", 12},
                                      {"/home/me/train.py", "<module>", 99}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layer, "nets/attention.py:31 Attention.forward");
  EXPECT_EQ(found->line, "me/train.py:12 train_step");
}

TEST(RequestPlace, WithoutAForwardIsTheInnermostLineOfTheProgram) {
  const auto found = place_of_frames({{"/x/site-packages/torch/optim/adam.py", "step", 9},
                                      {"/home/me/train.py", "update", 12},
                                      {"/home/me/train.py", "<module>", 99}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layer, "");
  EXPECT_EQ(found->line, "me/train.py:12 update");
  EXPECT_FALSE(place_of_frames({{"/x/site-packages/torch/optim/adam.py", "step", 9}}));
  EXPECT_FALSE(place_of_frames({}));
}

}  // namespace
}  // namespace ullage::diagnose
