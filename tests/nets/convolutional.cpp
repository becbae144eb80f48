// SPDX-License-Identifier: Apache-2.0
// A plain stack, a residual net and a U-net. They cover convolutions and transposed convolutions, BatchNorm with its
// buffers, GroupNorm, in-place ops, skip connections and pooling.

#include "training.h"

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

namespace nets {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kClasses = 10;

nn::Conv2d conv(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, kernel).stride(stride).padding((kernel - 1) / 2).bias(false));
}

class BlockImpl final : public nn::Module {
 public:
  BlockImpl(std::int64_t from, std::int64_t to, std::int64_t stride)
      : conv1_(register_module("conv1", conv(from, to, 3, stride))),
        norm1_(register_module("norm1", nn::BatchNorm2d(to))),
        conv2_(register_module("conv2", conv(to, to, 3))),
        norm2_(register_module("norm2", nn::BatchNorm2d(to))) {
    if (stride != 1 || from != to) shortcut_ = register_module("shortcut", conv(from, to, 1, stride));
  }

  Tensor forward(const Tensor& x) {
    Tensor out = norm2_(conv2_(norm1_(conv1_(x)).relu_()));
    return out.add_(shortcut_ ? shortcut_(x) : x).relu_();
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d shortcut_{nullptr};
};
TORCH_MODULE(Block);

nn::Sequential residual_net(std::int64_t width) {
  return nn::Sequential(conv(kColours, width, 3), nn::BatchNorm2d(width), nn::ReLU(nn::ReLUOptions(/*inplace=*/true)),
                        nn::MaxPool2d(2), Block(width, width, 1), Block(width, 2 * width, 2),
                        Block(2 * width, 4 * width, 2), Block(4 * width, 8 * width, 2), nn::AdaptiveAvgPool2d(1),
                        nn::Flatten(), nn::Linear(8 * width, kClasses));
}

std::unique_ptr<Training> make_resnet(const Sizes& sizes) {
  const auto width = at_scale<std::int64_t>(sizes.scale, 16, 48, 64);
  const auto batch = sizes.batch.value_or(at_scale(sizes.scale, 16, 16, 32));
  const auto side = sizes.side.value_or(at_scale(sizes.scale, 32, 64, 96));
  nn::Sequential net = residual_net(width);
  const auto loss = [=]() mutable {
    const Tensor pictures = torch::randn({batch, kColours, side, side});
    const Tensor labels = torch::randint(kClasses, {batch}, torch::kInt64);
    return torch::cross_entropy_loss(net->forward(pictures), labels);
  };
  return std::make_unique<SimpleTraining<torch::optim::SGD>>(
      net.ptr(), torch::optim::SGDOptions(0.02).momentum(0.9).weight_decay(1e-4), loss);
}

// Makes a net that learns to reproduce its input. It has BatchNorm, GroupNorm, and convolutions down and up. The side
// is even.
std::unique_ptr<Training> make_convnet(const Sizes& sizes) {
  const auto width = at_scale<std::int64_t>(sizes.scale, 16, 32, 64);
  const auto batch = sizes.batch.value_or(at_scale(sizes.scale, 8, 8, 16));
  const auto side = sizes.side.value_or(at_scale(sizes.scale, 48, 96, 128));
  const auto up = nn::ConvTranspose2dOptions(2 * width, width, 4).stride(2).padding(1);
  nn::Sequential net(conv(kColours, width, 3), nn::BatchNorm2d(width), nn::ReLU(), nn::MaxPool2d(2),
                     conv(width, 2 * width, 3), nn::GroupNorm(4, 2 * width), nn::SiLU(), conv(2 * width, 2 * width, 1),
                     nn::ConvTranspose2d(up), nn::LeakyReLU(), conv(width, kColours, 3));
  const auto loss = [=]() mutable {
    const Tensor pictures = torch::randn({batch, kColours, side, side});
    return torch::mse_loss(net->forward(pictures), pictures);
  };
  return std::make_unique<SimpleTraining<torch::optim::Adam>>(net.ptr(), torch::optim::AdamOptions(1e-3), loss);
}

class UNetImpl final : public nn::Module {
 public:
  explicit UNetImpl(std::int64_t width)
      : in_(register_module("in", conv(kColours, width, 3))),
        down1_(register_module("down1", conv(width, 2 * width, 3, 2))),
        norm1_(register_module("norm1", nn::BatchNorm2d(2 * width))),
        down2_(register_module("down2", conv(2 * width, 4 * width, 3, 2))),
        norm2_(register_module("norm2", nn::BatchNorm2d(4 * width))),
        up2_(register_module(
            "up2", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4 * width, 2 * width, 4).stride(2).padding(1)))),
        mix2_(register_module("mix2", conv(4 * width, 2 * width, 3))),
        mix1_(register_module("mix1", conv(3 * width, width, 3))),
        out_(register_module("out", conv(width, 1, 1))) {}

  Tensor forward(const Tensor& x) {
    const Tensor a = torch::leaky_relu(in_(x), 0.2);
    const Tensor b = torch::leaky_relu(norm1_(down1_(a)), 0.2);
    Tensor c = norm2_(down2_(b)).relu_();
    c = torch::dropout(up2_(c), 0.3, is_training());
    c = torch::relu(mix2_(torch::cat({c, b}, 1)));
    c = torch::upsample_bilinear2d(c, {x.size(2), x.size(3)}, /*align_corners=*/false);
    return torch::sigmoid(out_(torch::silu(mix1_(torch::cat({c, a}, 1)))));
  }

 private:
  nn::Conv2d in_;
  nn::Conv2d down1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d down2_;
  nn::BatchNorm2d norm2_;
  nn::ConvTranspose2d up2_;
  nn::Conv2d mix2_;
  nn::Conv2d mix1_;
  nn::Conv2d out_;
};
TORCH_MODULE(UNet);

// The side is a multiple of four.
std::unique_ptr<Training> make_unet(const Sizes& sizes) {
  const auto width = at_scale<std::int64_t>(sizes.scale, 16, 24, 32);
  const auto batch = sizes.batch.value_or(at_scale(sizes.scale, 8, 6, 16));
  const auto side = sizes.side.value_or(at_scale(sizes.scale, 32, 96, 128));
  UNet net(width);
  const auto loss = [=]() mutable {
    const Tensor pictures = torch::rand({batch, kColours, side, side});
    const Tensor masks = pictures.mean(1, /*keepdim=*/true).gt(0.5).to(torch::kFloat32);
    return torch::binary_cross_entropy(net(pictures), masks);
  };
  return std::make_unique<SimpleTraining<torch::optim::Adam>>(net.ptr(), torch::optim::AdamOptions(1e-3), loss);
}

}  // namespace

void add_convolutional(Nets& nets) {
  nets["convnet"] = {make_convnet, {"batch", "side"}};
  nets["resnet"] = {make_resnet, {"batch", "side"}};
  nets["unet"] = {make_unet, {"batch", "side"}};
}

}  // namespace nets
