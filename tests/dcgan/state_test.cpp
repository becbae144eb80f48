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

TEST(State, HoldsTheScalersOfFloat16) {
  const TempFolder folder;
  const NetworkShape shape{16, 10, 4, 4, 0};
  const StepSettings fp16{0, program::Precision::Fp16};
  const auto pictures = [] { return torch::rand({4, 3, 16, 16}) * 2 - 1; };
  torch::manual_seed(1);
  Trainer whole(shape, {}, 2, fp16);
  ASSERT_TRUE(whole.scalerG->load_state_dict({{"scale", 1024},
                                              {"growth_factor", 2},
                                              {"backoff_factor", 0.5},
                                              {"growth_interval", 3},
                                              {"_growth_tracker", 0}}));
  for (int i = 0; i < 2; ++i) whole.step(pictures());
  ASSERT_TRUE(save(whole, folder / "a"));
  for (int i = 0; i < 2; ++i) whole.step(pictures());
  EXPECT_EQ(whole.scalerG->get_scale(), 2048) << "it grew after three steps";

  torch::manual_seed(99);
  Trainer resumed(shape, {}, 2, fp16);
  auto file = program::SafetensorsFile::open(folder / "a");
  ASSERT_TRUE(file);
  const Status status = restore_state(resumed, *file);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(resumed.scalerG->get_growth_tracker(), 2);
  for (int i = 0; i < 2; ++i) resumed.step(pictures());
  EXPECT_EQ(resumed.scalerG->state_dict(), whole.scalerG->state_dict());
  EXPECT_EQ(state_sha256(resumed), state_sha256(whole));

  Trainer unstepped(shape, {}, 2, fp16);
  ASSERT_TRUE(save(unstepped, folder / "b"));
  auto none = program::SafetensorsFile::open(folder / "b");
  ASSERT_TRUE(none);
  EXPECT_TRUE(restore_state(resumed, *none)) << "all its steps were skipped";

  Trainer plain(shape, {}, 2);
  const Status other = restore_state(plain, *file);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("10 tensors of the checkpoint have no place here"), std::string::npos)
      << other.error().message;
}

TEST(State, RefusesAScalerOfAnotherKind) {
  const TempFolder folder;
  const NetworkShape shape{16, 10, 4, 4, 0};
  Trainer trainer(shape, {}, 2, {0, program::Precision::Fp16});
  trainer.step(torch::rand({4, 3, 16, 16}));
  std::vector<NamedTensor> tensors = state_of(trainer);
  for (NamedTensor& one : tensors) {
    if (one.name == "scalerD/backoff_factor") one.tensor.fill_(2);
  }
  ASSERT_TRUE(program::write_safetensors(folder / "a", to_write(tensors), {}));
  auto file = program::SafetensorsFile::open(folder / "a");
  ASSERT_TRUE(file);
  const Status status = restore_state(trainer, *file);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("scalerD/: backoff_factor is 2; it must be between 0 and 1"), std::string::npos)
      << status.error().message;
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
