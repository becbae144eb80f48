// SPDX-License-Identifier: Apache-2.0
// ResNet-50 as torchvision trains it, with the stride in the 3x3 convolution and in-place ops. Source: He et al., Deep
// Residual Learning for Image Recognition, CVPR 2016.

#include "subjects.h"

namespace bench_nets {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kClasses = 1000;
constexpr std::int64_t kWidening = 4;

nn::Conv2d conv(std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, kernel).stride(stride).padding((kernel - 1) / 2).bias(false));
}

class BottleneckImpl final : public nn::Module {
 public:
  BottleneckImpl(std::int64_t from, std::int64_t width, std::int64_t stride)
      : conv1_(register_module("conv1", conv(from, width, 1))),
        norm1_(register_module("bn1", nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", conv(width, width, 3, stride))),
        norm2_(register_module("bn2", nn::BatchNorm2d(width))),
        conv3_(register_module("conv3", conv(width, kWidening * width, 1))),
        norm3_(register_module("bn3", nn::BatchNorm2d(kWidening * width))) {
    if (stride == 1 && from == kWidening * width) return;
    shortcut_ = nn::Sequential(conv(from, kWidening * width, 1, stride), nn::BatchNorm2d(kWidening * width));
    register_module("downsample", shortcut_);
  }

  Tensor forward(const Tensor& x) {
    Tensor out = norm1_(conv1_(x)).relu_();
    out = norm2_(conv2_(out)).relu_();
    out = norm3_(conv3_(out));
    out += shortcut_ ? shortcut_->forward(x) : x;
    return out.relu_();
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d norm3_;
  nn::Sequential shortcut_{nullptr};
};
TORCH_MODULE(Bottleneck);

nn::Sequential layer(std::int64_t from, std::int64_t width, std::int64_t blocks, std::int64_t stride) {
  nn::Sequential built(Bottleneck(from, width, stride));
  for (std::int64_t i = 1; i < blocks; ++i) built->push_back(Bottleneck(kWidening * width, width, 1));
  return built;
}

class ResNetImpl final : public nn::Module {
 public:
  // `width` is the channels of the first convolution, 64 in the paper.
  explicit ResNetImpl(std::int64_t width)
      : conv1_(register_module("conv1",
                               nn::Conv2d(nn::Conv2dOptions(kColours, width, 7).stride(2).padding(3).bias(false)))),
        norm1_(register_module("bn1", nn::BatchNorm2d(width))),
        layer1_(register_module("layer1", layer(width, width, 3, 1))),
        layer2_(register_module("layer2", layer(4 * width, 2 * width, 4, 2))),
        layer3_(register_module("layer3", layer(8 * width, 4 * width, 6, 2))),
        layer4_(register_module("layer4", layer(16 * width, 8 * width, 3, 2))),
        head_(register_module("fc", nn::Linear(32 * width, kClasses))) {}

  Tensor forward(const Tensor& pictures) {
    Tensor x = norm1_(conv1_(pictures)).relu_();
    x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    x = layer4_->forward(layer3_->forward(layer2_->forward(layer1_->forward(x))));
    return head_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Sequential layer1_;
  nn::Sequential layer2_;
  nn::Sequential layer3_;
  nn::Sequential layer4_;
  nn::Linear head_;
};
TORCH_MODULE(ResNet);

Subject make(const Sizes& sizes) {
  const auto batch = sizes.batch.value_or(8);
  const auto side = sizes.side.value_or(224);
  ResNet net(sizes.width.value_or(64));
  const Tensor pictures = torch::randn({batch, kColours, side, side});
  const Tensor labels = torch::randint(kClasses, {batch}, torch::kInt64);
  const auto loss = [=]() mutable { return torch::cross_entropy_loss(net(pictures), labels); };
  return with_momentum(net.ptr(), /*decay=*/1e-4, loss);
}

}  // namespace

Net resnet50() { return {make, {"batch", "side", "width"}}; }

}  // namespace bench_nets
