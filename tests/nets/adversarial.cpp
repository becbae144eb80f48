// SPDX-License-Identifier: Apache-2.0
// Three nets: a GAN (two nets with an optimizer each), a critic with a gradient penalty, and both together (WGAN-GP).
// The penalty is the norm of a gradient, so its backward pass runs through another backward pass.

#include "training.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

namespace nets {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kNoise = 64;
constexpr std::int64_t kSide = 32;  // of a picture, unless --side says otherwise

nn::Conv2d halve(std::int64_t from, std::int64_t to) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, 4).stride(2).padding(1).bias(false));
}

nn::ConvTranspose2d twice(std::int64_t from, std::int64_t to) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(from, to, 4).stride(2).padding(1).bias(false));
}

nn::LeakyReLU leak() { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)); }
nn::ReLU rectify() { return nn::ReLU(nn::ReLUOptions(/*inplace=*/true)); }

// Makes 32 x 32 pictures from 1 x 1 noise.
nn::Sequential generator(std::int64_t width) {
  return nn::Sequential(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(kNoise, 4 * width, 4).bias(false)),
                        nn::BatchNorm2d(4 * width), rectify(), twice(4 * width, 2 * width), nn::BatchNorm2d(2 * width),
                        rectify(), twice(2 * width, width), nn::BatchNorm2d(width), rectify(), twice(width, kColours),
                        nn::Tanh());
}

nn::Sequential discriminator(std::int64_t width) {
  return nn::Sequential(halve(kColours, width), leak(), halve(width, 2 * width), nn::BatchNorm2d(2 * width), leak(),
                        halve(2 * width, 4 * width), nn::BatchNorm2d(4 * width), leak(),
                        nn::Conv2d(nn::Conv2dOptions(4 * width, 1, 4).bias(false)), nn::Flatten(), nn::Sigmoid());
}

class Gan final : public Training {
 public:
  explicit Gan(const Sizes& sizes)
      : batch_(sizes.batch.value_or(at_scale(sizes.scale, 16, 64, 96))),
        generator_(generator(at_scale<std::int64_t>(sizes.scale, 32, 64, 96))),
        discriminator_(discriminator(at_scale<std::int64_t>(sizes.scale, 32, 64, 96))),
        adam_g_(std::make_shared<torch::optim::Adam>(generator_->parameters(), kOptions)),
        adam_d_(std::make_shared<torch::optim::Adam>(discriminator_->parameters(), kOptions)) {
    add_model("generator", generator_.ptr());
    add_model("discriminator", discriminator_.ptr());
    add_optimizer("adam_g", generator_.ptr(), adam_g_);
    add_optimizer("adam_d", discriminator_.ptr(), adam_d_);
  }

  double step() override {
    const Tensor real = torch::rand({batch_, kColours, kSide, kSide}) * 2 - 1;
    const Tensor fake = generator_->forward(torch::randn({batch_, kNoise, 1, 1}));
    adam_d_->zero_grad();
    const Tensor loss_real = judge(real, 1);
    loss_real.backward();
    const Tensor loss_fake = judge(fake.detach(), 0);
    loss_fake.backward();
    adam_d_->step();
    adam_g_->zero_grad();
    const Tensor loss = judge(fake, 1);
    loss.backward();
    adam_g_->step();
    return (loss + loss_real + loss_fake).item<float>();
  }

 private:
  Tensor judge(const Tensor& pictures, double label) {
    return torch::binary_cross_entropy(discriminator_->forward(pictures), torch::full({batch_, 1}, label));
  }

  static inline const auto kOptions = torch::optim::AdamOptions(2e-4).betas({0.5, 0.999});
  const std::int64_t batch_;
  nn::Sequential generator_;
  nn::Sequential discriminator_;
  const std::shared_ptr<torch::optim::Adam> adam_g_;
  const std::shared_ptr<torch::optim::Adam> adam_d_;
};

// Gulrajani et al. 2017, "Improved Training of Wasserstein GANs": the critic's gradient at a mixture of real and fake
// is pulled towards norm one.
Tensor critic_loss(nn::Sequential& critic, const Tensor& real, const Tensor& fake) {
  const Tensor share = torch::rand({real.size(0), 1, 1, 1});
  const Tensor mixed = (share * real + (1 - share) * fake).requires_grad_();
  const Tensor slope = torch::autograd::grad({critic->forward(mixed).sum()}, {mixed}, /*grad_outputs=*/{},
                                             /*retain_graph=*/true, /*create_graph=*/true)[0];
  const Tensor penalty = (slope.flatten(1).norm(2, 1) - 1).pow(2).mean();
  return critic->forward(fake).mean() - critic->forward(real).mean() + 10 * penalty;
}

// A critic trained alone, to tell noise of two kinds apart.
class Penalty final : public Training {
 public:
  explicit Penalty(const Sizes& sizes)
      : batch_(sizes.batch.value_or(at_scale(sizes.scale, 8, 16, 48))),
        side_(sizes.side.value_or(kSide)),
        critic_(critic(at_scale<std::int64_t>(sizes.scale, 16, 48, 64), side_)) {
    adam_ = std::make_shared<torch::optim::Adam>(critic_->parameters(), torch::optim::AdamOptions(1e-3));
    add_model("critic", critic_.ptr());
    add_optimizer("adam", critic_.ptr(), adam_);
  }

  double step() override {
    const Tensor real = torch::randn({batch_, kColours, side_, side_});
    const Tensor fake = torch::rand({batch_, kColours, side_, side_});
    adam_->zero_grad();
    const Tensor loss = critic_loss(critic_, real, fake);
    loss.backward();
    adam_->step();
    return loss.item<float>();
  }

 private:
  // Uses smooth activations, because ReLU has second derivatives of zero. `side` is a multiple of four.
  static nn::Sequential critic(std::int64_t width, std::int64_t side) {
    return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(kColours, width, 3).padding(1)), nn::SiLU(),
                          halve(width, 2 * width), nn::Softplus(), halve(2 * width, 4 * width), nn::Tanh(),
                          nn::Flatten(), nn::Linear(4 * width * (side / 4) * (side / 4), 1));
  }

  const std::int64_t batch_;
  const std::int64_t side_;
  nn::Sequential critic_;
  std::shared_ptr<torch::optim::Adam> adam_;
};

// Uses the same critic loss, with a generator that is trained too. A step updates the critic five times, the generator
// once.
class WganGp final : public Training {
 public:
  explicit WganGp(const Sizes& sizes)
      : batch_(sizes.batch.value_or(at_scale(sizes.scale, 8, 24, 48))),
        side_(sizes.side.value_or(kSide)),
        generator_(painter(at_scale<std::int64_t>(sizes.scale, 16, 32, 64), side_)),
        critic_(critic(at_scale<std::int64_t>(sizes.scale, 16, 32, 64), side_)),
        adam_g_(std::make_shared<torch::optim::Adam>(generator_->parameters(), kOptions)),
        adam_c_(std::make_shared<torch::optim::Adam>(critic_->parameters(), kOptions)) {
    add_model("generator", generator_.ptr());
    add_model("critic", critic_.ptr());
    add_optimizer("adam_g", generator_.ptr(), adam_g_);
    add_optimizer("adam_c", critic_.ptr(), adam_c_);
  }

  double step() override {
    double told = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Tensor real = torch::rand({batch_, kColours, side_, side_}) * 2 - 1;
      adam_c_->zero_grad();
      const Tensor loss = critic_loss(critic_, real, made().detach());
      loss.backward();
      adam_c_->step();
      told = loss.item<float>();
    }
    adam_g_->zero_grad();
    const Tensor loss = -critic_->forward(made()).mean();
    loss.backward();
    adam_g_->step();
    return told + loss.item<float>();
  }

 private:
  static constexpr int kRounds = 5;
  static inline const auto kOptions = torch::optim::AdamOptions(1e-4).betas({0.0, 0.9});

  // Makes pictures from noise. `side` is a multiple of eight.
  static nn::Sequential painter(std::int64_t width, std::int64_t side) {
    return nn::Sequential(nn::Linear(kNoise, 4 * width * (side / 8) * (side / 8)),
                          nn::Unflatten(nn::UnflattenOptions(1, {4 * width, side / 8, side / 8})),
                          nn::BatchNorm2d(4 * width), rectify(), twice(4 * width, 2 * width),
                          nn::BatchNorm2d(2 * width), rectify(), twice(2 * width, width), nn::BatchNorm2d(width),
                          rectify(), twice(width, kColours), nn::Tanh());
  }

  // Has no BatchNorm, because that would mix the pictures of a batch: the penalty is computed for each picture alone.
  static nn::Sequential critic(std::int64_t width, std::int64_t side) {
    return nn::Sequential(halve(kColours, width), leak(), halve(width, 2 * width), nn::GroupNorm(4, 2 * width), leak(),
                          halve(2 * width, 4 * width), nn::GroupNorm(4, 4 * width), leak(), nn::Flatten(),
                          nn::Linear(4 * width * (side / 8) * (side / 8), 1));
  }

  Tensor made() { return generator_->forward(torch::randn({batch_, kNoise})); }

  const std::int64_t batch_;
  const std::int64_t side_;
  nn::Sequential generator_;
  nn::Sequential critic_;
  const std::shared_ptr<torch::optim::Adam> adam_g_;
  const std::shared_ptr<torch::optim::Adam> adam_c_;
};

}  // namespace

void add_adversarial(Nets& nets) {
  nets["gan"] = {[](const Sizes& sizes) { return std::make_unique<Gan>(sizes); }, {"batch"}};
  nets["penalty"] = {[](const Sizes& sizes) { return std::make_unique<Penalty>(sizes); }, {"batch", "side"}};
  nets["wgan_gp"] = {[](const Sizes& sizes) { return std::make_unique<WganGp>(sizes); }, {"batch", "side"}};
}

}  // namespace nets
