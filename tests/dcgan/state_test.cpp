// SPDX-License-Identifier: Apache-2.0
#include "dcgan/state.h"

#include "program/temp_folder.h"

#include <torch/utils.h>

#include <set>

namespace ullage::dcgan {
namespace {

using test::TempFolder;

constexpr NetworkShape kSmall{32, 10, 4, 4, 0};

Trainer trained(std::uint64_t seed, int steps, const NetworkShape& shape = kSmall) {
  torch::manual_seed(seed);
  Trainer trainer(shape, {}, 2);
  for (int i = 0; i < steps; ++i) trainer.step(torch::rand({4, 3, shape.image_size, shape.image_size}) * 2 - 1);
  return trainer;
}

Status save(const Trainer& trainer, const std::string& path) {
  const auto tensors = state_of(trainer);
  return program::write_safetensors(path, to_write(tensors), {});
}

TEST(State, RoundTripGoesOnBitForBit) {
  const TempFolder folder;
  Trainer whole = trained(1, 2);
  ASSERT_TRUE(save(whole, folder / "a"));
  const std::string at_two = state_sha256(whole);
  Losses expected;
  for (int i = 0; i < 3; ++i) expected = whole.step(torch::rand({4, 3, 32, 32}));
  const std::string at_five = state_sha256(whole);
  const torch::Tensor sample = whole.sample();

  Trainer resumed = trained(99, 0);
  auto file = program::SafetensorsFile::open(folder / "a");
  ASSERT_TRUE(file);
  const Status status = restore_state(resumed, *file);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(state_sha256(resumed), at_two);
  Losses found;
  for (int i = 0; i < 3; ++i) found = resumed.step(torch::rand({4, 3, 32, 32}));
  EXPECT_EQ(state_sha256(resumed), at_five);
  EXPECT_EQ(found.loss_d, expected.loss_d);
  EXPECT_EQ(found.loss_g, expected.loss_g);
  EXPECT_TRUE(torch::equal(resumed.sample(), sample)) << "the fixed noise is restored too";
}

TEST(State, NamesAllThatARunIs) {
  const Trainer trainer = trained(1, 1);
  std::set<std::string> names;
  for (const NamedTensor& item : state_of(trainer)) EXPECT_TRUE(names.insert(item.name).second) << item.name;
  for (const char* name : {"netG/main.0.weight", "netG/main.1.running_mean", "netD/main.3.num_batches_tracked",
                           "optimizerG/main.0.weight/exp_avg", "optimizerD/main.3.bias/exp_avg_sq",
                           "optimizerD/main.0.weight/step", "generator", "fixed_noise"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(State, EveryTensorCountsInTheDigest) {
  Trainer trainer = trained(1, 1);
  const std::string before = state_sha256(trainer);
  for (const NamedTensor& item : state_of(trainer)) {
    const torch::NoGradGuard no_grad;
    if (item.name == "generator" || item.name == "fixed_noise" || item.name.ends_with("/step")) continue;
    item.tensor.add_(1);
    EXPECT_NE(state_sha256(trainer), before) << item.name;
    item.tensor.sub_(1);
  }
  Trainer again = trained(1, 1);
  EXPECT_EQ(state_sha256(again), before);
  torch::randn({1});
  EXPECT_NE(state_sha256(again), before) << "the generator of numbers";
}

TEST(State, AnotherShapeIsRefusedByItsFirstKeys) {
  const TempFolder folder;
  ASSERT_TRUE(save(trained(1, 1), folder / "a"));
  auto file = program::SafetensorsFile::open(folder / "a");
  ASSERT_TRUE(file);
  Trainer wider({32, 10, 8, 4, 0}, {}, 2);
  Status status = restore_state(wider, *file);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, Error::Kind::BadFile);
  EXPECT_NE(status.error().message.find(
                "netG/main.0.weight is F32 [10, 16, 4, 4] in the checkpoint, F32 [10, 32, 4, 4] here"),
            std::string::npos)
      << status.error().message;
  ASSERT_TRUE(save(trained(1, 0), folder / "b"));  // before its first step, Adam has no state
  auto empty = program::SafetensorsFile::open(folder / "b");
  ASSERT_TRUE(empty);
  Trainer same(kSmall, {}, 2);
  status = restore_state(same, *empty);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find(
                "optimizerG/main.0.weight/exp_avg is missing in the checkpoint, F32 [10, 16, 4, 4] here"),
            std::string::npos)
      << status.error().message;
  Trainer shallower({16, 10, 8, 8, 0}, {}, 2);
  status = restore_state(shallower, *file);
  ASSERT_FALSE(status);
}

}  // namespace
}  // namespace ullage::dcgan
