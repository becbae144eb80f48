// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/clip.h"

#include "torch_program/precision.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;
using torch_program::Source;

constexpr double kMean[] = {0.48145466, 0.4578275, 0.40821073};
constexpr double kDeviation[] = {0.26862954, 0.26130258, 0.27577711};

// One number per colour, (3,1,1).
Tensor by_colour(const double (&figures)[3], at::ScalarType type) {
  const Tensor all = at::empty({3, 1, 1}, at::kDouble);
  std::copy(figures, figures + 3, all.mutable_data_ptr<double>());
  return all.to(type);
}

struct LayerNorm {
  Tensor weight, bias;

  explicit LayerNorm(const Source& source) : weight(source.take("weight")), bias(source.take("bias")) {}
  Tensor operator()(const Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5); }
};

struct Linear {
  Tensor weight, bias;

  explicit Linear(const Source& source) : weight(source.take("weight")), bias(source.take("bias")) {}
  Tensor operator()(const Tensor& x) const { return at::linear(x, weight, bias); }
};

// x + attention(ln_1(x)), then x + mlp(ln_2(x)). x is (N,L,width).
struct Block {
  std::int64_t heads;
  bool causal;  // a token sees only itself and those before it
  Tensor in_weight, in_bias;
  Linear out, widen, narrow;
  LayerNorm norm1, norm2;

  Block(const Source& source, std::int64_t heads_of_it, bool is_causal)
      : heads(heads_of_it),
        causal(is_causal),
        in_weight(source.under("attn").take("in_proj_weight")),
        in_bias(source.under("attn").take("in_proj_bias")),
        out(source.under("attn").under("out_proj")),
        widen(source.under("mlp").under("c_fc")),
        narrow(source.under("mlp").under("c_proj")),
        norm1(source.under("ln_1")),
        norm2(source.under("ln_2")) {}

  Tensor attention(const Tensor& x) const {
    const std::int64_t width = x.size(2);
    const Tensor all = at::linear(x, in_weight, in_bias).view({x.size(0), x.size(1), 3, heads, width / heads});
    const auto part = [&](std::int64_t i) { return all.select(2, i).transpose(1, 2); };  // (N,heads,L,64)
    const Tensor mixed = at::scaled_dot_product_attention(part(0), part(1), part(2), {}, 0.0, causal);
    return out(mixed.transpose(1, 2).reshape(x.sizes()));
  }

  Tensor operator()(const Tensor& input) const {
    const Tensor x = input + attention(norm1(input));
    const Tensor wide = widen(norm2(x));
    return x + narrow(wide * at::sigmoid(1.702 * wide));
  }
};

class Tower final {
 public:
  Tower(const Transformer& shape, const Source& source, bool causal) {
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks_.emplace_back(source.under("resblocks").under(std::to_string(i)), shape.heads(), causal);
    }
  }
  Tensor operator()(Tensor x) const {
    for (const Block& block : blocks_) x = block(x);
    return x;
  }

 private:
  std::vector<Block> blocks_;
};

}  // namespace

struct ImageTower::Layers {
  Tensor patches, first, positions, projection, mean, deviation;
  LayerNorm norm_before, norm_after;
  Tower tower;

  Layers(const ClipShape& shape, const Source& source)
      : patches(source.under("conv1").take("weight")),
        first(source.take("class_embedding")),
        positions(source.take("positional_embedding")),
        projection(source.take("proj")),
        mean(by_colour(kMean, projection.scalar_type())),
        deviation(by_colour(kDeviation, projection.scalar_type())),
        norm_before(source.under("ln_pre")),
        norm_after(source.under("ln_post")),
        tower(shape.vision, source.under("transformer"), /*causal=*/false) {}

  Tensor operator()(const Tensor& pictures) const {
    const Tensor seen = (pictures - mean) / deviation;
    const Tensor tokens = at::conv2d(seen, patches, {}, patches.size(2)).flatten(2).transpose(1, 2);
    const Tensor all = at::cat({first.expand({tokens.size(0), 1, -1}), tokens}, 1) + positions;
    return at::matmul(norm_after(tower(norm_before(all)).select(1, 0)), projection);
  }
};

ImageTower::ImageTower(const ClipShape& shape, const Source& source, program::Precision precision)
    : shape_(shape), precision_(precision), layers_(std::make_unique<const Layers>(shape, source.under("visual"))) {}

ImageTower::~ImageTower() = default;

Tensor ImageTower::operator()(const Tensor& pictures) const {
  const train::AutocastGuard guard = torch_program::autocast(precision_);
  return (*layers_)(pictures).to(pictures.scalar_type());
}

struct TextTower::Layers {
  Tensor words;  // stays in the file: 100 MB, of which a text needs a few rows
  Tensor positions, projection;
  LayerNorm norm_after;
  Tower tower;

  Layers(const ClipShape& shape, const Source& source)
      : words(source.under("token_embedding").view("weight")),
        positions(source.take("positional_embedding")),
        projection(source.take("text_projection")),
        norm_after(source.under("ln_final")),
        tower(shape.text, source.under("transformer"), /*causal=*/true) {}

  // `tokens` (N,L) are indices. The end of a text has the greatest one, so argmax finds it.
  Tensor operator()(const Tensor& tokens) const {
    const Tensor x = norm_after(tower(at::embedding(words, tokens).to(projection.scalar_type()) + positions));
    const Tensor ends = tokens.argmax(1).view({-1, 1, 1}).expand({-1, 1, x.size(2)});
    return at::matmul(x.gather(1, ends).squeeze(1), projection);
  }
};

TextTower::TextTower(const ClipShape& shape, const Source& source)
    : layers_(std::make_unique<const Layers>(shape, source)) {}

TextTower::~TextTower() = default;

Tensor TextTower::operator()(const Tensor& tokens) const {
  const at::NoGradGuard no_grad;
  return (*layers_)(tokens);
}

}  // namespace ullage::vqgan_clip
