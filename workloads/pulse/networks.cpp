// SPDX-License-Identifier: Apache-2.0
#include "pulse/networks.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ullage::pulse {
namespace {

using at::Tensor;
using torch_program::Source;

constexpr double kSlope = 0.2;            // every leaky ReLU's
constexpr std::int64_t kFusedFrom = 128;  // from this side on, upscaling is one transposed convolution
constexpr double kMappingRate = 0.01;     // factor on its weights and biases, besides the gain
constexpr double kNormEps = 1e-8, kInstanceEps = 1e-5;
const double kGain = std::sqrt(2.0);

// The factor on a weight (out, in, ...): gain * fan_in^-1/2.
double multiplier(double gain, std::int64_t fan_in) { return gain * std::pow(static_cast<double>(fan_in), -0.5); }

Tensor by_channel(const Tensor& figures) { return figures.view({-1, 1, 1}); }

// A convolution of odd size that keeps the picture's side; it adds the bias itself.
struct Convolution {
  Tensor weight, bias;

  Convolution(const Source& source, std::int64_t inputs, std::int64_t size, double gain)
      : weight(source.take("weight", multiplier(gain, inputs * size * size))), bias(source.take("bias")) {}

  Tensor operator()(const Tensor& x) const {
    const std::int64_t around = weight.size(2) / 2;
    return at::conv2d(x, weight, bias, 1, around);
  }
};

// Returns the 4x4 window for a transposed convolution of stride 2 that equals doubling the pixels, then a 3x3
// convolution. It is the sum of the 3x3 window at the four places where that fits into 4x4.
Tensor fused_window(const Tensor& weight) {
  const Tensor padded = at::constant_pad_nd(weight.transpose(0, 1), {1, 1, 1, 1});
  const auto place = [&padded](std::int64_t row, std::int64_t column) {
    return padded.narrow(2, row, 4).narrow(3, column, 4);
  };
  return place(1, 1) + place(0, 1) + place(1, 0) + place(0, 0);
}

// Doubles the side: convolution without bias, blur of each channel, then the bias.
struct UpConvolution {
  bool fused;
  Tensor weight, bias, blur;

  UpConvolution(const Source& source, std::int64_t side, std::int64_t inputs)
      : fused(side >= kFusedFrom),
        weight(source.take("weight", multiplier(kGain, inputs * 9))),
        bias(by_channel(source.take("bias"))),
        blur(source.take("intermediate.kernel").expand({bias.size(0), 1, 3, 3})) {
    if (fused) weight = fused_window(weight);
  }

  Tensor operator()(const Tensor& x) const {
    return at::conv2d(convolved(x), blur, {}, 1, 1, 1, /*groups=*/blur.size(0)) + bias;
  }

  Tensor convolved(const Tensor& x) const {
    if (fused) return at::conv_transpose2d(x, weight, {}, 2, 1);
    const Tensor doubled = at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
    return at::conv2d(doubled, weight, {}, 1, 1);
  }
};

// Adds noise with a strength per channel; then leaky ReLU, instance norm, and x * (s0 + 1) + s1, where s is linear in
// w.
struct Epilogue {
  Tensor strength, style_weight, style_bias;

  explicit Epilogue(const Source& source)
      : strength(by_channel(source.take("noise.weight"))),
        style_weight(source.take("style_mod.lin.weight", multiplier(1, kLatent))),
        style_bias(source.take("style_mod.lin.bias")) {}

  // w: (B, 512).
  Tensor operator()(const Tensor& input, const Tensor& w, const Tensor& noise) const {
    Tensor x = at::leaky_relu(input + (strength * noise).to(input.scalar_type()), kSlope);
    x = at::instance_norm(x, {}, {}, {}, {}, /*use_input_stats=*/true, 0.1, kInstanceEps, /*cudnn_enabled=*/true);
    const Tensor style = at::linear(w, style_weight, style_bias).view({-1, 2, x.size(1), 1, 1});
    return x * (style.select(1, 0) + 1) + style.select(1, 1);
  }
};

Source block_source(const Source& source, std::int64_t side) {
  const std::string text = std::to_string(side);
  return source.under("blocks").under(text + "x" + text);
}

// The 4x4 block, whose input is a constant.
struct FirstBlock {
  Tensor constant;  // with its bias
  Epilogue epilogue1, epilogue2;
  Convolution convolution;

  FirstBlock(const Source& source, std::int64_t channels)
      : constant(source.take("const") + by_channel(source.take("bias"))),
        epilogue1(source.under("epi1")),
        epilogue2(source.under("epi2")),
        convolution(source.under("conv"), channels, 3, kGain) {}

  Tensor operator()(const Tensor& w, std::span<const Tensor> noises) const {
    const Tensor x = epilogue1(constant.expand({w.size(0), -1, -1, -1}), w.select(1, 0), noises[0]);
    return epilogue2(convolution(x), w.select(1, 1), noises[1]);
  }
};

struct Block {
  UpConvolution up;
  Epilogue epilogue1, epilogue2;
  Convolution convolution;

  Block(const Source& source, std::int64_t side, std::int64_t inputs, std::int64_t channels)
      : up(source.under("conv0_up"), side, inputs),
        epilogue1(source.under("epi1")),
        epilogue2(source.under("epi2")),
        convolution(source.under("conv1"), channels, 3, kGain) {}

  // `w` and `noises` are those of all layers; this block's begin at `layer`.
  Tensor operator()(const Tensor& input, const Tensor& w, std::span<const Tensor> noises, std::int64_t layer) const {
    const auto first = static_cast<std::size_t>(layer);
    const Tensor x = epilogue1(up(input), w.select(1, layer), noises[first]);
    return epilogue2(convolution(x), w.select(1, layer + 1), noises[first + 1]);
  }
};

}  // namespace

Mapping::Mapping(const Source& source) {
  for (int i = 0; i < 8; ++i) {
    const Source layer = source.under("dense" + std::to_string(i));
    layers_.push_back(
        {layer.take("weight", multiplier(kGain, kLatent) * kMappingRate), layer.take("bias", kMappingRate)});
  }
}

Tensor Mapping::operator()(const Tensor& z) const {
  Tensor x = z * at::rsqrt(z.pow(2).mean(1, /*keepdim=*/true) + kNormEps);
  for (const Layer& layer : layers_) x = at::leaky_relu(at::linear(x, layer.weight, layer.bias), kSlope);
  return x;
}

struct Synthesis::Layers {
  FirstBlock first;
  std::vector<Block> blocks;
  Convolution to_rgb;

  Layers(const SynthesisShape& shape, const Source& source)
      : first(block_source(source, 4), shape.channels.front()),
        to_rgb(source.under("torgb"), shape.channels.back(), 1, 1) {
    for (std::size_t i = 1; i < shape.channels.size(); ++i) {
      const std::int64_t side = std::int64_t{4} << i;
      blocks.emplace_back(block_source(source, side), side, shape.channels[i - 1], shape.channels[i]);
    }
  }
};

Synthesis::Synthesis(const SynthesisShape& shape, const Source& source)
    : shape_(shape), layers_(std::make_unique<const Layers>(shape, source)) {}

Synthesis::~Synthesis() = default;

Tensor Synthesis::operator()(const Tensor& w, std::span<const Tensor> noises) const {
  ULLAGE_CHECK(w.size(1) == layers() && noises.size() == static_cast<std::size_t>(layers()),
               "a style and a noise for each layer");
  Tensor x = layers_->first(w, noises);
  std::int64_t layer = 2;
  for (const Block& block : layers_->blocks) {
    x = block(x, w, noises, layer);
    layer += 2;
  }
  return layers_->to_rgb(x);
}

}  // namespace ullage::pulse
