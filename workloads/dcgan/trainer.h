// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of training, in the order of pytorch/examples/dcgan/main.py.

#include "dcgan/networks.h"
#include "dcgan/run_folder.h"
#include "torch_program/precision.h"
#include "ullage/train/accumulation.h"
#include "ullage/train/grad_scaler.h"

#include <torch/optim/adam.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ullage::dcgan {

struct AdamSettings {
  double lr = 2e-4;
  double beta1 = 0.5;
  double beta2 = 0.999;
};

// How a step is computed. By default as pytorch/examples does.
struct StepSettings {
  std::int64_t micro_batch = 0;  // pictures that go through the networks at a time; 0, or the batch or more: all
  program::Precision precision = program::Precision::Fp32;  // of layers
};

inline constexpr std::int64_t kMostSamples = 64;  // pictures made from the fixed noise

// Gives every parameter that lacks it the state that Adam makes in its first step.
void make_adam_state(torch::optim::Adam& adam);

class Trainer final {
 public:
  // Makes the networks and `samples` rows of fixed noise. Draws from torch's default generator, so seed it first.
  Trainer(const NetworkShape& shape, const AdamSettings& adam, std::int64_t samples, const StepSettings& settings = {});

  // Runs one step on real pictures (batch, 3, side, side) from -1 to 1, and draws the noise. Pass them as
  // step(std::move(real)): then they are freed as soon as the discriminator no longer needs them.
  Losses step(torch::Tensor real);

  // In micro-batches the gradients are those of the whole batch, but for BatchNorm's statistics. The pictures of the
  // noise are made twice, once for each network, so that the generator's activations are those of one micro-batch. The
  // generator's running averages are updated only the second time.

  // The parts of a step of a whole batch, in order, for tests that look between them. Gradients stay until the next
  // zero_grad.
  void backward_real(torch::Tensor real);          // netD.zero_grad, D(real) against 1
  void backward_fake(const torch::Tensor& noise);  // G(noise), D of it, detached, against 0
  void update_discriminator();
  void backward_generator();  // netG.zero_grad, D(fake) against 1
  void update_generator();
  // In fp16, what the scalers of the last step said: see GradScaler::update().
  const Status& scaler_said() const { return scaler_said_; }
  const Losses& losses() const { return losses_; }
  // The same in micro-batches. `real` has as many pictures as `noise` has rows.
  void accumulate_discriminator(torch::Tensor real, const torch::Tensor& noise);
  void accumulate_generator(const torch::Tensor& noise);
  // The layers that differ in micro-batches; empty if the whole batch goes through the networks at once.
  std::vector<train::AcrossTheBatch> differences() const;

  // Returns the pictures of the fixed noise (samples, 3, side, side), made in train mode as in the example. It changes
  // no state: BatchNorm's buffers are put back, no random number is drawn, no autograd graph is kept.
  torch::Tensor sample();

  Generator netG;
  Discriminator netD;
  torch::optim::Adam optimizerG;
  torch::optim::Adam optimizerD;
  torch::Tensor fixed_noise;  // (samples, nz, 1, 1)
  // Enabled in fp16 alone. Each network's loss has its own, because they overflow at different scales.
  std::unique_ptr<train::GradScaler> scalerG;
  std::unique_ptr<train::GradScaler> scalerD;

 private:
  torch::Tensor generate(const torch::Tensor& noise);
  torch::Tensor discriminate(const torch::Tensor& pictures);
  torch::Tensor backward(train::GradScaler& scaler, const torch::Tensor& output, double label);
  void update(train::GradScaler& scaler, torch::optim::Optimizer& optimizer);
  double backward(train::Accumulation& window, const torch::Tensor& output, double label, const char* of);

  std::int64_t nz_;
  StepSettings settings_;
  std::optional<train::Accumulation> windowG_;
  std::optional<train::Accumulation> windowD_;
  torch::Tensor fake_;  // from backward_fake to backward_generator
  torch::Tensor errD_;
  Losses losses_;
  Status scaler_said_ = success();
};

}  // namespace ullage::dcgan
