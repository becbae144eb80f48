// SPDX-License-Identifier: Apache-2.0
#include "dcgan/trainer.h"

#include "dcgan/state.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace ullage::dcgan {
namespace {

constexpr NetworkShape kSmallShape{32, 10, 4, 4, 0};

torch::Tensor pictures(std::int64_t count) { return torch::rand({count, 3, 32, 32}) * 2 - 1; }

TEST(Trainer, SampleLeavesNoTrace) {
  torch::manual_seed(1);
  Trainer trainer(kSmallShape, {}, 5);
  trainer.step(pictures(4));
  const std::string before = state_sha256(trainer);
  const torch::Tensor first = trainer.sample();
  EXPECT_EQ(first.sizes(), (torch::IntArrayRef{5, 3, 32, 32}));
  EXPECT_FALSE(first.requires_grad());
  EXPECT_EQ(state_sha256(trainer), before);
  EXPECT_TRUE(torch::equal(trainer.sample(), first));
}

TEST(Trainer, LearnsToTellPicturesFromNoise) {
  torch::manual_seed(1);
  Trainer trainer(kSmallShape, {}, 1);
  const torch::Tensor real = torch::ones({8, 3, 32, 32});
  const Losses first = trainer.step(real.clone());
  Losses last;
  for (int i = 0; i < 20; ++i) last = trainer.step(real.clone());
  EXPECT_LT(last.loss_d, 0.8 * first.loss_d);
  EXPECT_GT(last.d_x, last.d_g_z1);
}

TEST(Trainer, StatesItsLossesAsTheExampleDoes) {
  torch::manual_seed(1);
  Trainer trainer(kSmallShape, {}, 1);
  const torch::Tensor real = pictures(4);
  trainer.backward_real(real);
  const double real_part = -std::log(trainer.losses().d_x);  // the log of a mean is not the mean of logs, but near it
  trainer.backward_fake(torch::randn({4, 10, 1, 1}));
  const double fake_part = -std::log(1 - trainer.losses().d_g_z1);
  trainer.update_discriminator();
  EXPECT_NEAR(trainer.losses().loss_d, real_part + fake_part, 0.1);
  trainer.backward_generator();
  EXPECT_NEAR(trainer.losses().loss_g, -std::log(trainer.losses().d_g_z2), 0.1);
}

TEST(Trainer, ABatchOfOneIsEnoughForBatchNorm) {
  Trainer trainer({16, 10, 4, 4, 0}, {}, 1);
  const Losses losses = trainer.step(torch::rand({1, 3, 16, 16}));
  EXPECT_TRUE(std::isfinite(losses.loss_d) && std::isfinite(losses.loss_g));
}

TEST(Trainer, LetsThePicturesGoAfterTheDiscriminatorSawThem) {
  Trainer trainer(kSmallShape, {}, 1);
  torch::Tensor real = pictures(2);
  const c10::weak_intrusive_ptr<c10::StorageImpl> storage(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(real.storage().unsafeGetStorageImpl()));
  trainer.backward_real(std::move(real));
  EXPECT_TRUE(storage.expired());
}

// The program recognises a lack of memory by the exception's type, so autograd must pass the exception on unchanged.
TEST(Trainer, OutOfMemoryKeepsItsTypeOnItsWayThroughABackward) {
  const torch::Tensor x = torch::ones({2}, torch::requires_grad());
  const torch::Tensor y = x * 2;
  y.register_hook([](const torch::Tensor&) -> torch::Tensor { TORCH_CHECK_WITH(OutOfMemoryError, false, "no room"); });
  EXPECT_THROW(y.sum().backward(), c10::OutOfMemoryError);
}

}  // namespace
}  // namespace ullage::dcgan
