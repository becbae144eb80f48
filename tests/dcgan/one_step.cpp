// SPDX-License-Identifier: Apache-2.0
// dcgan_one_step OUT STEPS [IMAGE_SIZE FEATURES BATCH [MICRO_BATCH fp32|bf16 standard|separable]]
//
// Trains a small net on seeded noise and writes everything to OUT as safetensors, for test_one_step.py. OUT has the
// start (before/...), real.N and noise.N of each step, and losses (STEPS x 5). For the first step it has the gradients
// that Adam used (gradient/...) and the buffers after it (after/...).

#include "dcgan/state.h"

#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using namespace ullage::dcgan;
using Tensors = std::vector<NamedTensor>;

void add_copies(Tensors& out, const std::string& prefix, const torch::nn::Module& network, bool parameters) {
  if (parameters) {
    for (const auto& item : network.named_parameters())
      out.push_back({prefix + item.key(), item.value().detach().clone()});
  }
  for (const auto& item : network.named_buffers()) out.push_back({prefix + item.key(), item.value().clone()});
}

void add_gradients(Tensors& out, const std::string& prefix, const torch::nn::Module& network) {
  for (const auto& item : network.named_parameters()) out.push_back({prefix + item.key(), item.value().grad().clone()});
}

Tensors record(const NetworkShape& shape, std::int64_t batch, std::int64_t steps, const StepSettings& settings) {
  torch::manual_seed(5);
  Trainer trainer(shape, {}, 1, settings);
  const bool in_parts = settings.micro_batch > 0;
  Tensors out;
  add_copies(out, "before/netG/", *trainer.netG, true);
  add_copies(out, "before/netD/", *trainer.netD, true);
  torch::Tensor losses = torch::zeros({steps, 5});
  for (std::int64_t step = 0; step < steps; ++step) {
    const torch::Tensor real = torch::rand({batch, 3, shape.image_size, shape.image_size}) * 2 - 1;
    const torch::Tensor noise = torch::randn({batch, shape.nz, 1, 1});
    out.push_back({"real." + std::to_string(step), real});
    out.push_back({"noise." + std::to_string(step), noise});
    if (in_parts) {
      trainer.accumulate_discriminator(real, noise);
    } else {
      trainer.backward_real(real);
      trainer.backward_fake(noise);
    }
    if (step == 0) add_gradients(out, "gradient/netD/", *trainer.netD);
    if (in_parts) {
      trainer.accumulate_generator(noise);
    } else {
      trainer.update_discriminator();
      trainer.backward_generator();
    }
    if (step == 0) add_gradients(out, "gradient/netG/", *trainer.netG);
    if (!in_parts) trainer.update_generator();
    if (step == 0) {
      add_copies(out, "after/netG/", *trainer.netG, false);
      add_copies(out, "after/netD/", *trainer.netD, false);
    }
    const Losses& l = trainer.losses();
    losses[step] = torch::tensor({l.loss_d, l.loss_g, l.d_x, l.d_g_z1, l.d_g_z2}).to(torch::kFloat32);
  }
  out.push_back({"losses", losses});
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 6 && argc != 9) {
    return std::fprintf(stderr,
                        "usage: dcgan_one_step OUT STEPS [IMAGE_SIZE FEATURES BATCH [MICRO_BATCH PRECISION BLOCKS]]\n"),
           2;
  }
  const auto number = [&](int i, long otherwise) { return argc > i ? std::atol(argv[i]) : otherwise; };
  const long features = number(4, 8);
  using ullage::program::Precision;
  const bool bf16 = argc > 7 && argv[7] == std::string_view("bf16");
  const Tensors tensors =
      record({number(3, 32), 100, features, features, 0, argc > 8 && argv[8] == std::string_view("separable")},
             number(5, 16), number(2, 1), {number(6, 0), bf16 ? Precision::Bf16 : Precision::Fp32});
  const auto status = ullage::program::write_safetensors(argv[1], to_write(tensors), {});
  if (!status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
  return status ? 0 : 1;
}
