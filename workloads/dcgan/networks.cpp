// SPDX-License-Identifier: Apache-2.0
#include "dcgan/networks.h"

#include "ullage/base/check.h"
#include "ullage/train/blocks.h"

#include <ATen/autocast_mode.h>

#include <algorithm>

namespace ullage::dcgan {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kKernel = 4;

// Grows 1 x 1 to 4 x 4, or shrinks it back.
template <class Options>
Options end_layer(std::int64_t from, std::int64_t to) {
  return Options(from, to, kKernel).stride(1).padding(0).bias(false);
}

// Doubles or halves the side.
template <class Options>
Options middle_layer(std::int64_t from, std::int64_t to) {
  return Options(from, to, kKernel).stride(2).padding(1).bias(false);
}

// Adds a layer that doubles or halves the side, from hidden channels to hidden channels.
template <class Plain, class Separable, class Options>
void push_hidden(nn::Sequential& layers, bool separable, std::int64_t from, std::int64_t to) {
  if (separable) {
    layers->push_back(Separable(train::SeparableOptions{from, to, kKernel, 2, 1}));
  } else {
    layers->push_back(Plain(middle_layer<Options>(from, to)));
  }
}

torch::Tensor run(nn::Sequential& layers, const torch::Tensor& input) {
  if (!at::autocast::is_autocast_enabled(input.device().type())) return layers->forward(input);
  torch::Tensor x = input;
  for (auto layer = layers->begin(); layer != layers->end(); ++layer) {
    if (layer + 1 == layers->end()) x = x.to(torch::kFloat32);
    x = layer->forward<torch::Tensor>(x);
  }
  return x;
}

}  // namespace

std::vector<std::int64_t> channels(std::int64_t image_size, std::int64_t features, std::int64_t max_channels) {
  ULLAGE_CHECK(image_size >= 16 && (image_size & (image_size - 1)) == 0, "the image size is a power of two from 16 up");
  std::vector<std::int64_t> list;
  for (std::int64_t side = image_size / 2, wanted = features; side >= kKernel; side /= 2, wanted *= 2) {
    list.push_back(max_channels > 0 ? std::min(wanted, max_channels) : wanted);
  }
  return list;
}

GeneratorImpl::GeneratorImpl(const NetworkShape& shape) {
  using Layer = nn::ConvTranspose2dOptions;
  const auto normalise = [this](std::int64_t count) {
    main_->push_back(nn::BatchNorm2d(count));
    main_->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
  };
  const auto list = channels(shape.image_size, shape.ngf, shape.max_channels);
  main_->push_back(nn::ConvTranspose2d(end_layer<Layer>(shape.nz, list.back())));
  normalise(list.back());
  for (std::size_t i = list.size() - 1; i > 0; --i) {
    push_hidden<nn::ConvTranspose2d, train::SeparableConvTranspose2d, Layer>(main_, shape.separable, list[i],
                                                                             list[i - 1]);
    normalise(list[i - 1]);
  }
  main_->push_back(nn::ConvTranspose2d(middle_layer<Layer>(list.front(), kColours)));
  main_->push_back(nn::Tanh());
  register_module("main", main_);
}

torch::Tensor GeneratorImpl::forward(const torch::Tensor& noise) { return run(main_, noise); }

DiscriminatorImpl::DiscriminatorImpl(const NetworkShape& shape) {
  using Layer = nn::Conv2dOptions;
  const auto leak = [this] {
    main_->push_back(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)));
  };
  const auto list = channels(shape.image_size, shape.ndf, shape.max_channels);
  main_->push_back(nn::Conv2d(middle_layer<Layer>(kColours, list.front())));
  leak();
  for (std::size_t i = 1; i < list.size(); ++i) {
    push_hidden<nn::Conv2d, train::SeparableConv2d, Layer>(main_, shape.separable, list[i - 1], list[i]);
    main_->push_back(nn::BatchNorm2d(list[i]));
    leak();
  }
  main_->push_back(nn::Conv2d(end_layer<Layer>(list.back(), 1)));
  main_->push_back(nn::Sigmoid());
  register_module("main", main_);
}

torch::Tensor DiscriminatorImpl::forward(const torch::Tensor& pictures) { return run(main_, pictures).view({-1}); }

void init_weights(nn::Module& network) {
  const torch::NoGradGuard no_grad;
  network.apply([](nn::Module& module) {
    if (auto* up = module.as<nn::ConvTranspose2d>()) {
      up->weight.normal_(0.0, 0.02);
    } else if (auto* down = module.as<nn::Conv2d>()) {
      down->weight.normal_(0.0, 0.02);
    } else if (auto* norm = module.as<nn::BatchNorm2d>()) {
      norm->weight.normal_(1.0, 0.02);
      norm->bias.zero_();
    }
  });
}

std::int64_t parameter_count(const nn::Module& network) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : network.parameters()) count += parameter.numel();
  return count;
}

}  // namespace ullage::dcgan
