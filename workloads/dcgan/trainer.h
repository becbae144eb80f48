// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of training, in the order of pytorch/examples/dcgan/main.py.

#include "dcgan/networks.h"
#include "dcgan/run_folder.h"

#include <torch/optim/adam.h>

#include <cstdint>

namespace ullage::dcgan {

struct AdamSettings {
  double lr = 2e-4;
  double beta1 = 0.5;
  double beta2 = 0.999;
};

inline constexpr std::int64_t kMostSamples = 64;  // pictures made from the fixed noise

class Trainer final {
 public:
  // Makes the networks and `samples` rows of fixed noise. Draws from torch's default generator, so seed it first.
  Trainer(const NetworkShape& shape, const AdamSettings& adam, std::int64_t samples);

  // Runs one step on real pictures (batch, 3, side, side) from -1 to 1, and draws the noise. Pass them as
  // step(std::move(real)): then they are freed as soon as the discriminator no longer needs them.
  Losses step(torch::Tensor real);

  // The parts of a step, in order, for tests that look between them. Gradients stay until the next zero_grad.
  void backward_real(torch::Tensor real);          // netD.zero_grad, D(real) against 1
  void backward_fake(const torch::Tensor& noise);  // G(noise), D of it, detached, against 0
  void update_discriminator();
  void backward_generator();  // netG.zero_grad, D(fake) against 1
  void update_generator();
  const Losses& losses() const { return losses_; }

  // Returns the pictures of the fixed noise (samples, 3, side, side), made in train mode as in the example. It changes
  // no state: BatchNorm's buffers are put back, no random number is drawn, no autograd graph is kept.
  torch::Tensor sample();

  Generator netG;
  Discriminator netD;
  torch::optim::Adam optimizerG;
  torch::optim::Adam optimizerD;
  torch::Tensor fixed_noise;  // (samples, nz, 1, 1)

 private:
  torch::Tensor backward(const torch::Tensor& output, double label);

  std::int64_t nz_;
  torch::Tensor fake_;  // from backward_fake to backward_generator
  torch::Tensor errD_;
  Losses losses_;
};

}  // namespace ullage::dcgan
