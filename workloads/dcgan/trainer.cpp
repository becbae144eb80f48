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

// Initialises each network before the next is made, so that numbers are drawn in the order of pytorch/examples.
template <class Network>
Network make_network(const NetworkShape& shape) {
  Network network(shape);
  init_weights(*network);
  return network;
}

// The phase names 64 as the batch at which `samples` stops growing: it has a row per picture of a batch, up to 64.
torch::Tensor make_fixed_noise(std::int64_t samples, std::int64_t nz) {
  const runtime::Phase phase("noise of the samples", {{"batch", kMostSamples}});
  return torch::randn({samples, nz, 1, 1});
}

// Names the parameters for recordings: "netG.main.0.weight", as in pytorch/examples' state_dict.
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

// Computes the loss of `output` against one label for all, runs its backward and returns it.
torch::Tensor Trainer::backward(const torch::Tensor& output, double label) {
  const torch::Tensor loss = torch::binary_cross_entropy(output, torch::full_like(output, label));
  loss.backward();
  return loss.detach();
}

// By value: the pictures are freed here after the backward, which is the last use.
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
