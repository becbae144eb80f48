// SPDX-License-Identifier: Apache-2.0
// DenseNet-121 (Huang et al., Densely Connected Convolutional Networks, CVPR 2017) with in-place ops, as torchvision
// trains it. The input of each layer is the concatenated output of all earlier layers of its block.

#include "subjects.h"

#include <array>

namespace bench_nets {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::int64_t kClasses = 1000;
constexpr std::int64_t kNarrow = 4;  // output channels of a layer's 1x1 convolution, in units of the growth
constexpr std::array<std::int64_t, 4> kLayers = {6, 12, 24, 16};  // in each block

nn::Conv2d conv(std::int64_t from, std::int64_t to, std::int64_t kernel) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, kernel).padding((kernel - 1) / 2).bias(false));
}

class DenseLayerImpl final : public nn::Module {
 public:
  DenseLayerImpl(std::int64_t from, std::int64_t growth)
      : norm1_(register_module("norm1", nn::BatchNorm2d(from))),
        conv1_(register_module("conv1", conv(from, kNarrow * growth, 1))),
        norm2_(register_module("norm2", nn::BatchNorm2d(kNarrow * growth))),
        conv2_(register_module("conv2", conv(kNarrow * growth, growth, 3))) {}

  Tensor forward(const std::vector<Tensor>& features) {
    const Tensor narrow = conv1_(norm1_(torch::cat(features, 1)).relu_());
    return conv2_(norm2_(narrow).relu_());
  }

 private:
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d conv2_;
};
TORCH_MODULE(DenseLayer);

class DenseBlockImpl final : public nn::Module {
 public:
  DenseBlockImpl(std::int64_t from, std::int64_t growth, std::int64_t layers) {
    for (std::int64_t i = 0; i < layers; ++i)
      layers_.push_back(register_module("denselayer" + std::to_string(i + 1), DenseLayer(from + i * growth, growth)));
  }

  Tensor forward(const Tensor& x) {
    std::vector<Tensor> features{x};
    for (DenseLayer& layer : layers_) features.push_back(layer(features));
    return torch::cat(features, 1);
  }

 private:
  std::vector<DenseLayer> layers_;
};
TORCH_MODULE(DenseBlock);

void add_transition(nn::Sequential& to, std::int64_t from) {
  to->push_back(nn::BatchNorm2d(from));
  to->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
  to->push_back(conv(from, from / 2, 1));
  to->push_back(nn::AvgPool2d(nn::AvgPool2dOptions(2).stride(2)));
}

nn::Sequential features(std::int64_t growth) {
  std::int64_t channels = 2 * growth;
  nn::Sequential built(nn::Conv2d(nn::Conv2dOptions(kColours, channels, 7).stride(2).padding(3).bias(false)),
                       nn::BatchNorm2d(channels), nn::ReLU(nn::ReLUOptions(/*inplace=*/true)),
                       nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  for (std::size_t block = 0; block < kLayers.size(); ++block) {
    if (block > 0) {
      add_transition(built, channels);
      channels /= 2;
    }
    built->push_back(DenseBlock(channels, growth, kLayers[block]));
    channels += kLayers[block] * growth;
  }
  built->push_back(nn::BatchNorm2d(channels));
  built->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
  built->push_back(nn::AdaptiveAvgPool2d(1));
  built->push_back(nn::Flatten());
  built->push_back(nn::Linear(channels, kClasses));
  return built;
}

Subject make(const Sizes& sizes) {
  const auto batch = sizes.batch.value_or(8);
  const auto side = sizes.side.value_or(224);
  nn::Sequential net = features(/*growth=*/sizes.width.value_or(32));
  const Tensor pictures = torch::randn({batch, kColours, side, side});
  const Tensor labels = torch::randint(kClasses, {batch}, torch::kInt64);
  const auto loss = [=]() mutable { return torch::cross_entropy_loss(net->forward(pictures), labels); };
  return with_momentum(net.ptr(), /*decay=*/1e-4, loss);
}

}  // namespace

Net densenet121() { return {make, {"batch", "side", "width"}}; }

}  // namespace bench_nets
