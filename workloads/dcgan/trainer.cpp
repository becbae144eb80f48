// SPDX-License-Identifier: Apache-2.0
#include "dcgan/trainer.h"

#include "ullage/runtime/runtime.h"

#include <string>
#include <tuple>
#include <utility>

namespace ullage::dcgan {
namespace {

constexpr double kReal = 1.0;
constexpr double kFake = 0.0;

torch::optim::AdamOptions adam_options(const AdamSettings& adam) {
  return torch::optim::AdamOptions(adam.lr).betas(std::make_tuple(adam.beta1, adam.beta2));
}

// Made and initialised one after the other: the order of the draws is that of pytorch/examples.
template <class Network>
Network make_network(const NetworkShape& shape) {
  Network network(shape);
  init_weights(*network);
  return network;
}

// Of its rows there are as many as pictures in a batch, up to the most that a picture of samples shows.
torch::Tensor make_fixed_noise(std::int64_t samples, std::int64_t nz) {
  const runtime::Phase phase("noise of the samples", {{"batch", kMostSamples}});
  return torch::randn({samples, nz, 1, 1});
}

// For recordings: "netG.main.0.weight", as pytorch/examples' state_dict has it.
void tell_names(const std::string& net, const torch::nn::Module& module) {
  for (const auto& item : module.named_parameters())
    runtime::name_parameter(item.value().const_data_ptr(), net + "." + item.key());
}

}  // namespace

Trainer::Trainer(const NetworkShape& shape, const AdamSettings& adam, std::int64_t samples)
    : netG(make_network<Generator>(shape)),
      netD(make_network<Discriminator>(shape)),
      optimizerG(netG->parameters(), adam_options(adam)),
      optimizerD(netD->parameters(), adam_options(adam)),
      fixed_noise(make_fixed_noise(samples, shape.nz)),
      nz_(shape.nz) {
  tell_names("netG", *netG);
  tell_names("netD", *netD);
}

Losses Trainer::step(torch::Tensor real) {
  const std::int64_t batch = real.size(0);
  backward_real(std::move(real));
  backward_fake(torch::randn({batch, nz_, 1, 1}));
  update_discriminator();
  backward_generator();
  update_generator();
  return losses_;
}

// The loss of `output` against one label for all, after its backward.
torch::Tensor Trainer::backward(const torch::Tensor& output, double label) {
  const torch::Tensor loss = torch::binary_cross_entropy(output, torch::full_like(output, label));
  loss.backward();
  return loss.detach();
}

// By value: the pictures die here, after the backward, the last that needs them.
void Trainer::backward_real(torch::Tensor real) {
  netD->zero_grad();
  const torch::Tensor output = netD->forward(real);
  errD_ = backward(output, kReal);
  losses_.d_x = output.mean().item<double>();
}

void Trainer::backward_fake(const torch::Tensor& noise) {
  fake_ = netG->forward(noise);
  const torch::Tensor output = netD->forward(fake_.detach());
  errD_ = errD_ + backward(output, kFake);
  losses_.d_g_z1 = output.mean().item<double>();
}

void Trainer::update_discriminator() {
  optimizerD.step();
  losses_.loss_d = std::exchange(errD_, {}).item<double>();
}

void Trainer::backward_generator() {
  netG->zero_grad();
  const torch::Tensor output = netD->forward(std::exchange(fake_, {}));
  losses_.loss_g = backward(output, kReal).item<double>();
  losses_.d_g_z2 = output.mean().item<double>();
}

void Trainer::update_generator() { optimizerG.step(); }

torch::Tensor Trainer::sample() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> kept;
  for (const torch::Tensor& buffer : netG->buffers()) kept.push_back(buffer.clone());
  torch::Tensor pictures = netG->forward(fixed_noise);
  const auto buffers = netG->buffers();
  for (std::size_t i = 0; i < kept.size(); ++i) buffers[i].copy_(kept[i]);
  return pictures;
}

}  // namespace ullage::dcgan
