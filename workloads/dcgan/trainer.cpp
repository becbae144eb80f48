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

// Puts a network's buffers back at the end.
class KeptBuffers final {
 public:
  explicit KeptBuffers(torch::nn::Module& network) : network_(network) {
    for (const torch::Tensor& buffer : network.buffers()) kept_.push_back(buffer.clone());
  }
  ~KeptBuffers() {
    const torch::NoGradGuard no_grad;
    const auto buffers = network_.buffers();
    for (std::size_t i = 0; i < kept_.size(); ++i) buffers[i].copy_(kept_[i]);
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  torch::nn::Module& network_;
  std::vector<torch::Tensor> kept_;
};

train::Accumulation window_of(const torch::nn::Module& network, train::GradScaler& scaler) {
  return train::Accumulation::create(network, {.allow = {"BatchNorm2d"}, .scaler = &scaler}).value();
}

std::unique_ptr<train::GradScaler> scaler_of(const StepSettings& settings) {
  return std::make_unique<train::GradScaler>(
      torch::kCPU, train::GradScaler::Settings{.enabled = settings.precision == program::Precision::Fp16});
}

// Throws if the status is an error. It cannot be one here, because the slices of a batch add up to it.
void must(const Status& status) {
  if (!status) throw ContractError(status.error().text());
}

// The phase states 64 as the batch at which `samples` stops growing: a run has a sample per picture of a batch, up to
// 64.
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

void make_adam_state(torch::optim::Adam& adam) {
  for (const auto& group : adam.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      auto& state = adam.state()[parameter.unsafeGetTensorImpl()];
      if (state != nullptr) continue;
      auto fresh = std::make_unique<torch::optim::AdamParamState>();
      fresh->exp_avg(torch::zeros_like(parameter.detach()));
      fresh->exp_avg_sq(torch::zeros_like(parameter.detach()));
      state = std::move(fresh);
    }
  }
}

Trainer::Trainer(const NetworkShape& shape, const AdamSettings& adam, std::int64_t samples,
                 const StepSettings& settings)
    : netG(make_network<Generator>(shape)),
      netD(make_network<Discriminator>(shape)),
      optimizerG(netG->parameters(), adam_options(adam)),
      optimizerD(netD->parameters(), adam_options(adam)),
      fixed_noise(make_fixed_noise(samples, shape.nz)),
      scalerG(scaler_of(settings)),
      scalerD(scaler_of(settings)),
      nz_(shape.nz),
      settings_(settings) {
  tell_names("netG", *netG);
  tell_names("netD", *netD);
  // A scaler may skip the first steps, and a checkpoint needs the state all the same.
  if (scalerG->is_enabled()) make_adam_state(optimizerG), make_adam_state(optimizerD);
  if (settings.micro_batch > 0) windowG_ = window_of(*netG, *scalerG), windowD_ = window_of(*netD, *scalerD);
}

Losses Trainer::step(torch::Tensor real) {
  const std::int64_t batch = real.size(0);
  scaler_said_ = success();
  if (settings_.micro_batch > 0 && settings_.micro_batch < batch) {
    const torch::Tensor noise = torch::randn({batch, nz_, 1, 1});
    accumulate_discriminator(std::move(real), noise);
    accumulate_generator(noise);
    return losses_;
  }
  backward_real(std::move(real));
  backward_fake(torch::randn({batch, nz_, 1, 1}));
  update_discriminator();
  backward_generator();
  update_generator();
  return losses_;
}

torch::Tensor Trainer::generate(const torch::Tensor& noise) {
  const train::AutocastGuard guard = torch_program::autocast(settings_.precision);
  return netG->forward(noise);
}

torch::Tensor Trainer::discriminate(const torch::Tensor& pictures) {
  const train::AutocastGuard guard = torch_program::autocast(settings_.precision);
  return netD->forward(pictures);
}

// Computes the loss of `output` against one label for all, runs its backward and returns it.
torch::Tensor Trainer::backward(train::GradScaler& scaler, const torch::Tensor& output, double label) {
  const torch::Tensor loss = torch::binary_cross_entropy(output, torch::full_like(output, label));
  scaler.scale(loss).backward();
  return loss.detach();
}

void Trainer::update(train::GradScaler& scaler, torch::optim::Optimizer& optimizer) {
  scaler.step(optimizer);
  if (Status said = scaler.update(); !said) scaler_said_ = std::move(said);
}

// Takes the pictures by value, so that they are freed here after the backward pass, which is their last use.
void Trainer::backward_real(torch::Tensor real) {
  netD->zero_grad();
  const torch::Tensor output = discriminate(real);
  errD_ = backward(*scalerD, output, kReal);
  losses_.d_x = output.mean().item<double>();
}

void Trainer::backward_fake(const torch::Tensor& noise) {
  fake_ = generate(noise);
  const torch::Tensor output = discriminate(fake_.detach());
  errD_ = errD_ + backward(*scalerD, output, kFake);
  losses_.d_g_z1 = output.mean().item<double>();
}

void Trainer::update_discriminator() {
  update(*scalerD, optimizerD);
  losses_.loss_d = std::exchange(errD_, {}).item<double>();
}

void Trainer::backward_generator() {
  netG->zero_grad();
  const torch::Tensor output = discriminate(std::exchange(fake_, {}));
  losses_.loss_g = backward(*scalerG, output, kReal).item<double>();
  losses_.d_g_z2 = output.mean().item<double>();
}

void Trainer::update_generator() { update(*scalerG, optimizerG); }

torch::Tensor Trainer::sample() {
  const torch::NoGradGuard no_grad;
  const KeptBuffers kept(*netG);
  return generate(fixed_noise);
}

// Adds a micro-batch's gradients; returns its part of the batch's mean loss.
double Trainer::backward(train::Accumulation& window, const torch::Tensor& output, double label, const char* of) {
  const torch::Tensor loss = torch::binary_cross_entropy(output, torch::full_like(output, label));
  const torch::Tensor weighed = window.weigh(loss, static_cast<double>(output.size(0)), of).value();
  must(window.backward(weighed));
  return weighed.item<double>();
}

void Trainer::accumulate_discriminator(torch::Tensor real, const torch::Tensor& noise) {
  const auto batch = static_cast<double>(real.size(0));
  const auto slices = train::micro_batches(real.size(0), settings_.micro_batch).value();
  losses_ = {};
  netD->zero_grad();
  must(windowD_->begin({{"real", batch}, {"fake", batch}}));
  for (const train::Slice& slice : slices) {
    const torch::Tensor output = discriminate(slice.of(real));
    losses_.loss_d += backward(*windowD_, output, kReal, "real");
    losses_.d_x += output.sum().item<double>() / batch;
  }
  real = torch::Tensor();
  const KeptBuffers kept(*netG);
  for (const train::Slice& slice : slices) {
    torch::Tensor fake;
    {
      const torch::NoGradGuard no_grad;
      fake = generate(slice.of(noise));
    }
    const torch::Tensor output = discriminate(fake);
    losses_.loss_d += backward(*windowD_, output, kFake, "fake");
    losses_.d_g_z1 += output.sum().item<double>() / batch;
  }
  if (Status said = windowD_->step(optimizerD).value().scaler; !said) scaler_said_ = std::move(said);
}

void Trainer::accumulate_generator(const torch::Tensor& noise) {
  const auto batch = static_cast<double>(noise.size(0));
  netG->zero_grad();
  must(windowG_->begin({{"fake", batch}}));
  const auto slices = train::micro_batches(noise.size(0), settings_.micro_batch).value();
  for (const train::Slice& slice : slices) {
    const torch::Tensor output = discriminate(generate(slice.of(noise)));
    losses_.loss_g += backward(*windowG_, output, kReal, "fake");
    losses_.d_g_z2 += output.sum().item<double>() / batch;
  }
  if (Status said = windowG_->step(optimizerG).value().scaler; !said) scaler_said_ = std::move(said);
}

std::vector<train::AcrossTheBatch> Trainer::differences() const {
  if (!windowG_) return {};
  std::vector<train::AcrossTheBatch> all;
  for (const auto& [net, window] : {std::pair{"netG.", &windowG_}, std::pair{"netD.", &windowD_}}) {
    for (train::AcrossTheBatch layer : (*window)->differences()) {
      layer.layer = net + layer.layer;
      all.push_back(std::move(layer));
    }
  }
  return all;
}

}  // namespace ullage::dcgan
