// SPDX-License-Identifier: Apache-2.0
// Two nets against each other with an optimizer each, and a critic whose loss holds the norm of a gradient, so that
// backward runs through backward.

#include "training.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

namespace nets {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kNoise = 64;

nn::Conv2d halve(std::int64_t from, std::int64_t to) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, 4).stride(2).padding(1).bias(false));
}

nn::ConvTranspose2d twice(std::int64_t from, std::int64_t to) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(from, to, 4).stride(2).padding(1).bias(false));
}

nn::LeakyReLU leak() { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)); }
nn::ReLU rectify() { return nn::ReLU(nn::ReLUOptions(/*inplace=*/true)); }

// From 1 x 1 to 32 x 32.
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
  explicit Gan(Scale scale)
      : batch_(at_scale<std::int64_t>(scale, 16, 64, 96)),
        generator_(generator(at_scale<std::int64_t>(scale, 32, 64, 96))),
        discriminator_(discriminator(at_scale<std::int64_t>(scale, 32, 64, 96))),
        adam_g_(std::make_shared<torch::optim::Adam>(generator_->parameters(), kOptions)),
        adam_d_(std::make_shared<torch::optim::Adam>(discriminator_->parameters(), kOptions)) {
    add_model("generator", generator_.ptr());
    add_model("discriminator", discriminator_.ptr());
    add_optimizer("adam_g", generator_.ptr(), adam_g_);
    add_optimizer("adam_d", discriminator_.ptr(), adam_d_);
  }

  double step() override {
    const Tensor real = torch::rand({batch_, kColours, 32, 32}) * 2 - 1;
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
class Penalty final : public Training {
 public:
  explicit Penalty(Scale scale)
      : batch_(at_scale<std::int64_t>(scale, 8, 16, 48)), critic_(critic(at_scale<std::int64_t>(scale, 16, 48, 64))) {
    adam_ = std::make_shared<torch::optim::Adam>(critic_->parameters(), torch::optim::AdamOptions(1e-3));
    add_model("critic", critic_.ptr());
    add_optimizer("adam", critic_.ptr(), adam_);
  }

  double step() override {
    const Tensor real = torch::randn({batch_, kColours, 32, 32});
    const Tensor fake = torch::rand({batch_, kColours, 32, 32});
    const Tensor share = torch::rand({batch_, 1, 1, 1});
    const Tensor mixed = (share * real + (1 - share) * fake).requires_grad_();
    adam_->zero_grad();
    const Tensor slope = torch::autograd::grad({critic_->forward(mixed).sum()}, {mixed}, /*grad_outputs=*/{},
                                               /*retain_graph=*/true, /*create_graph=*/true)[0];
    const Tensor penalty = (slope.flatten(1).norm(2, 1) - 1).pow(2).mean();
    const Tensor loss = critic_->forward(fake).mean() - critic_->forward(real).mean() + 10 * penalty;
    loss.backward();
    adam_->step();
    return loss.item<float>();
  }

 private:
  // Smooth, so that its second derivatives are not nought.
  static nn::Sequential critic(std::int64_t width) {
    return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(kColours, width, 3).padding(1)), nn::SiLU(),
                          halve(width, 2 * width), nn::Softplus(), halve(2 * width, 4 * width), nn::Tanh(),
                          nn::Flatten(), nn::Linear(4 * width * 8 * 8, 1));
  }

  const std::int64_t batch_;
  nn::Sequential critic_;
  std::shared_ptr<torch::optim::Adam> adam_;
};

}  // namespace

void add_adversarial(std::map<std::string, MakeTraining>& nets) {
  nets["gan"] = [](Scale scale) { return std::make_unique<Gan>(scale); };
  nets["penalty"] = [](Scale scale) { return std::make_unique<Penalty>(scale); };
}

}  // namespace nets
