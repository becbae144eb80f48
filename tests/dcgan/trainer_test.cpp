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

TEST(Trainer, MicroBatchesHaveTheGradientsOfTheBatchWhereNoLayerLooksAcrossIt) {
  const auto gradients = [](std::int64_t micro_batch) {
    torch::manual_seed(1);
    Trainer trainer(kSmallShape, {}, 1, {micro_batch});
    trainer.netD->eval(), trainer.netG->eval();  // BatchNorm by its running averages
    const torch::Tensor real = pictures(6), noise = torch::randn({6, 10, 1, 1});
    if (micro_batch > 0) {
      trainer.accumulate_discriminator(real, noise);
    } else {
      trainer.backward_real(real);
      trainer.backward_fake(noise);
      trainer.update_discriminator();
    }
    std::vector<torch::Tensor> all;
    for (const torch::Tensor& p : trainer.netD->parameters()) all.push_back(p.grad().clone());
    if (micro_batch > 0) {
      trainer.accumulate_generator(noise);
    } else {
      trainer.backward_generator();
      trainer.update_generator();
    }
    for (const torch::Tensor& p : trainer.netG->parameters()) all.push_back(p.grad().clone());
    const Losses& l = trainer.losses();
    all.push_back(torch::tensor({l.loss_d, l.loss_g, l.d_x, l.d_g_z1, l.d_g_z2}));
    return all;
  };
  // Windows refuse BatchNorm that they were not allowed; those of a trainer were made in train mode.
  const auto whole = gradients(0), parts = gradients(4);
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    // The generator's gradients go through a discriminator after one step of Adam, which makes 1e-6 of rounding 1e-4.
    EXPECT_LE((whole[i] - parts[i]).abs().max().item<double>(), 1e-3 * whole[i].abs().max().item<double>()) << i;
  }
}

TEST(Trainer, MicroBatchesUpdateTheGeneratorsAveragesOnceEachAndLeaveTheRestWhole) {
  torch::manual_seed(1);
  Trainer trainer(kSmallShape, {}, 1, {3});
  const Losses losses = trainer.step(pictures(8));  // 3, 3 and 2
  EXPECT_TRUE(std::isfinite(losses.loss_d) && losses.d_x > 0 && losses.d_x < 1);
  EXPECT_EQ(trainer.netG->named_buffers()["main.1.num_batches_tracked"].item<std::int64_t>(), 3);
  EXPECT_EQ(trainer.netD->named_buffers()["main.3.num_batches_tracked"].item<std::int64_t>(), 9);
  ASSERT_EQ(trainer.differences().size(), 5U);
  EXPECT_EQ(trainer.differences().front().layer, "netG.main.1");
  EXPECT_TRUE(Trainer(kSmallShape, {}, 1).differences().empty());
}

TEST(Trainer, AMicroBatchOfTheBatchIsTheBatch) {
  const auto state_with = [](std::int64_t micro_batch) {
    torch::manual_seed(1);
    Trainer trainer(kSmallShape, {}, 1, {micro_batch});
    trainer.step(pictures(4));
    return state_sha256(trainer);
  };
  EXPECT_EQ(state_with(0), state_with(4));
  EXPECT_NE(state_with(0), state_with(2));
}

TEST(Trainer, InBfloat16WeightsAndProbabilitiesStayFloat32) {
  torch::manual_seed(1);
  Trainer trainer(kSmallShape, {}, 2, {0, program::Precision::Bf16});
  const torch::Tensor real = pictures(4);
  std::string plain_state;
  {
    torch::manual_seed(1);
    Trainer plain(kSmallShape, {}, 2);
    (void)pictures(4);
    plain.step(real.clone());
    plain_state = state_sha256(plain);
  }
  const Losses losses = trainer.step(real.clone());
  EXPECT_TRUE(std::isfinite(losses.loss_d) && std::isfinite(losses.loss_g));
  for (const torch::Tensor& p : trainer.netG->parameters()) EXPECT_EQ(p.scalar_type(), torch::kFloat32);
  for (const torch::Tensor& b : trainer.netD->buffers()) EXPECT_NE(b.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(trainer.sample().scalar_type(), torch::kFloat32);
  EXPECT_NE(state_sha256(trainer), plain_state) << "it ran in bfloat16";
}

train::GradScaler::State with_scale(double scale) {
  return {{"scale", scale},
          {"growth_factor", 2},
          {"backoff_factor", 0.5},
          {"growth_interval", 2000},
          {"_growth_tracker", 0}};
}
constexpr double kOverflows = 3e38;  // whatever the gradient

TEST(Trainer, InFloat16EachNetworkHasAScalerOfItsOwn) {
  torch::manual_seed(1);
  Trainer trainer({16, 10, 4, 4, 0}, {}, 1, {0, program::Precision::Fp16});
  const auto real = [] { return torch::rand({4, 3, 16, 16}) * 2 - 1; };
  for (train::GradScaler* scaler : {trainer.scalerG.get(), trainer.scalerD.get()}) {
    ASSERT_TRUE(scaler->load_state_dict(with_scale(1024)));
  }
  trainer.step(real());
  EXPECT_TRUE(trainer.scaler_said());
  EXPECT_EQ(trainer.scalerD->get_growth_tracker(), 1);
  EXPECT_EQ(trainer.scalerG->get_growth_tracker(), 1);
  const torch::Tensor d = trainer.netD->parameters().front().detach().clone();
  ASSERT_TRUE(trainer.scalerD->load_state_dict(with_scale(kOverflows)));
  const torch::Tensor g = trainer.netG->parameters().front().detach().clone();
  trainer.step(real());
  EXPECT_TRUE(torch::equal(trainer.netD->parameters().front(), d)) << "its gradients overflow: no step";
  EXPECT_FALSE(torch::equal(trainer.netG->parameters().front(), g)) << "the other network goes on";
  EXPECT_EQ(trainer.scalerD->get_scale(), 1.5e38F);
  EXPECT_FALSE(Trainer(kSmallShape, {}, 1, {0, program::Precision::Bf16}).scalerD->is_enabled());
}

TEST(Trainer, SaysThatTheScaleFellAfterTwentySkippedSteps) {
  for (const std::int64_t micro_batch : {0, 2}) {
    torch::manual_seed(1);
    Trainer trainer({16, 10, 4, 4, 0}, {}, 1, {micro_batch, program::Precision::Fp16});
    for (train::GradScaler* scaler : {trainer.scalerG.get(), trainer.scalerD.get()}) {
      ASSERT_TRUE(scaler->load_state_dict(with_scale(kOverflows)));
    }
    for (int step = 1; step <= 20; ++step) {
      trainer.step(torch::rand({4, 3, 16, 16}));
      ASSERT_EQ(trainer.scaler_said().ok(), step < 20) << step;
    }
    EXPECT_NE(trainer.scaler_said().error().message.find("20 steps in a row were skipped"), std::string::npos);
  }
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
