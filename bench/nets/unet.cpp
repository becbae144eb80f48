// SPDX-License-Identifier: Apache-2.0
// A U-Net of four levels with batch norm (Ronneberger et al., MICCAI 2015). Each level has two convolutions on the way
// down, two on the way up, and a skip connection.

#include "subjects.h"

namespace bench_nets {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kClasses = 2;
constexpr std::int64_t kLevels = 4;

nn::Sequential twice(std::int64_t from, std::int64_t to) {
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
  };
  const nn::ReLUOptions in_place(true);
  return nn::Sequential(conv(from, to), nn::BatchNorm2d(to), nn::ReLU(in_place), conv(to, to), nn::BatchNorm2d(to),
                        nn::ReLU(in_place));
}

class UNetImpl final : public nn::Module {
 public:
  // `width` is the channels of the first level; each deeper level has twice as many.
  explicit UNetImpl(std::int64_t width) {
    for (std::int64_t i = 0; i <= kLevels; ++i) {
      const std::int64_t to = width << i;
      down_.push_back(register_module("down" + std::to_string(i), twice(i == 0 ? kColours : to / 2, to)));
    }
    for (std::int64_t i = 0; i < kLevels; ++i) {
      const std::int64_t to = width << i;
      const auto larger = nn::ConvTranspose2dOptions(2 * to, to, 2).stride(2);
      up_.push_back(register_module("up" + std::to_string(i), nn::ConvTranspose2d(larger)));
      join_.push_back(register_module("join" + std::to_string(i), twice(2 * to, to)));
    }
    out_ = register_module("out", nn::Conv2d(nn::Conv2dOptions(width, kClasses, 1)));
  }

  Tensor forward(Tensor x) {
    std::vector<Tensor> skips;
    for (std::size_t i = 0; i < kLevels; ++i) {
      skips.push_back(down_[i]->forward(x));
      x = torch::max_pool2d(skips.back(), 2);
    }
    x = down_[kLevels]->forward(x);
    for (std::size_t i = kLevels; i-- > 0;) x = join_[i]->forward(torch::cat({skips[i], up_[i](x)}, 1));
    return out_(x);
  }

 private:
  std::vector<nn::Sequential> down_;
  std::vector<nn::ConvTranspose2d> up_;
  std::vector<nn::Sequential> join_;
  nn::Conv2d out_{nullptr};
};
TORCH_MODULE(UNet);

// The side must be a multiple of 16.
Subject make(const Sizes& sizes) {
  const auto batch = sizes.batch.value_or(4);
  const auto side = sizes.side.value_or(256);
  UNet net(sizes.width.value_or(32));
  const Tensor pictures = torch::randn({batch, kColours, side, side});
  const Tensor masks = torch::randint(kClasses, {batch, side, side}, torch::kInt64);
  const auto loss = [=]() mutable { return torch::cross_entropy_loss(net(pictures), masks); };
  return with_momentum(net.ptr(), /*decay=*/0, loss);
}

}  // namespace

Net unet() { return {make, {"batch", "side", "width"}}; }

}  // namespace bench_nets
