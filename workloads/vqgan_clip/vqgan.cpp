// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/vqgan.h"

#include "torch_program/precision.h"
#include "vqgan_clip/straight_through.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;
using torch_program::Source;

constexpr std::int64_t kNormGroups = 32;
constexpr double kNormEps = 1e-6;

Tensor swish(const Tensor& x) { return x * at::sigmoid(x); }

struct GroupNorm {
  Tensor weight, bias;

  explicit GroupNorm(const Source& source) : weight(source.take("weight")), bias(source.take("bias")) {}
  Tensor operator()(const Tensor& x) const { return at::group_norm(x, kNormGroups, weight, bias, kNormEps); }
};

// A convolution of odd size that keeps the picture's side.
struct Convolution {
  Tensor weight, bias;

  explicit Convolution(const Source& source) : weight(source.take("weight")), bias(source.take("bias")) {}
  Tensor operator()(const Tensor& x) const { return at::conv2d(x, weight, bias, 1, weight.size(2) / 2); }
};

// x + conv2(swish(norm2(conv1(swish(norm1(x)))))); x goes through a 1x1 convolution if the channels change.
struct Residual {
  GroupNorm norm1;
  Convolution conv1;
  GroupNorm norm2;
  Convolution conv2;
  std::optional<Convolution> shortcut;

  Residual(const Source& source, bool changes)
      : norm1(source.under("norm1")),
        conv1(source.under("conv1")),
        norm2(source.under("norm2")),
        conv2(source.under("conv2")) {
    if (changes) shortcut.emplace(source.under("nin_shortcut"));
  }

  Tensor operator()(const Tensor& x) const {
    const Tensor h = conv2(swish(norm2(conv1(swish(norm1(x))))));
    return (shortcut ? (*shortcut)(x) : x) + h;
  }
};

// One head over all tokens; the weights are the softmax over keys of q.k / sqrt(C).
struct Attention {
  GroupNorm norm;
  Convolution q, k, v, out;
  std::int64_t rows_at_once;

  Attention(const Source& source, std::int64_t rows)
      : norm(source.under("norm")),
        q(source.under("q")),
        k(source.under("k")),
        v(source.under("v")),
        out(source.under("proj_out")),
        rows_at_once(rows) {}

  Tensor operator()(const Tensor& x) const {
    const Tensor h = norm(x);
    const Tensor queries = q(h).flatten(2).transpose(1, 2);         // (B,tokens,C)
    const Tensor keys = k(h).flatten(2), values = v(h).flatten(2);  // (B,C,tokens)
    const double scale = std::pow(static_cast<double>(x.size(1)), -0.5);
    const auto mixed = [&](const Tensor& rows) {
      const Tensor weights = at::softmax(at::bmm(rows, keys) * scale, 2);
      return at::bmm(values, weights.transpose(1, 2));
    };
    const std::int64_t tokens = queries.size(1);
    if (rows_at_once == 0 || rows_at_once >= tokens) return x + out(mixed(queries).view(x.sizes()));
    std::vector<Tensor> parts;
    for (const Tensor& rows : queries.split(rows_at_once, 1)) parts.push_back(mixed(rows));
    return x + out(at::cat(parts, 2).view(x.sizes()));
  }
};

// The blocks of one resolution, each followed by attention if that resolution has it.
struct Level {
  std::vector<Residual> blocks;
  std::vector<Attention> attention;

  Level(const ModelConfig& config, const Source& source, std::int64_t level, std::int64_t count, bool changes,
        const Slices& slices) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      blocks.emplace_back(source.under("block").under(number), changes && i == 0);
      if (config.has_attention(level)) attention.emplace_back(source.under("attn").under(number), slices.attention);
    }
  }

  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      x = blocks[i](x);
      if (!attention.empty()) x = attention[i](x);
    }
    return x;
  }
};

struct Middle {
  Residual block1;
  Attention attention;
  Residual block2;

  Middle(const Source& source, const Slices& slices)
      : block1(source.under("block_1"), false),
        attention(source.under("attn_1"), slices.attention),
        block2(source.under("block_2"), false) {}

  Tensor operator()(const Tensor& x) const { return block2(attention(block1(x))); }
};

// Halves the side. Pads with zeros only on the right and below.
struct Down {
  Convolution convolution;

  Tensor operator()(const Tensor& x) const {
    return at::conv2d(at::constant_pad_nd(x, {0, 1, 0, 1}), convolution.weight, convolution.bias, 2);
  }
};

struct Up {
  Convolution convolution;

  Tensor operator()(const Tensor& x) const {
    return convolution(at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}));
  }
};

struct Ending {
  GroupNorm norm;
  Convolution convolution;

  explicit Ending(const Source& source) : norm(source.under("norm_out")), convolution(source.under("conv_out")) {}
  Tensor operator()(const Tensor& x) const { return convolution(swish(norm(x))); }
};

// Returns whether the first block of `level` changes the number of channels; `before` is the level that its input comes
// from.
bool changes(const ModelConfig& config, std::int64_t level, std::int64_t before) {
  const auto factor = [&](std::int64_t one) { return config.multipliers[static_cast<std::size_t>(one)]; };
  return factor(level) != factor(before);
}

// Returns, for each row z (N,C), the index of the code e (K,C) with the least |z|^2 + |e|^2 - 2 z.e. The result is (N).
Tensor nearest_of_rows(const Tensor& rows, const Tensor& codebook) {
  const Tensor distances =
      rows.pow(2).sum(1, /*keepdim=*/true) + codebook.pow(2).sum(1) - at::matmul(2 * rows, codebook.t());
  return distances.argmin(1);
}

// Looks up rows of the codebook: indices (B,h,w) become (B,C,h,w).
Tensor looked_up(const Tensor& codebook, const Tensor& indices) {
  return at::embedding(codebook, indices).movedim(3, 1);
}

}  // namespace

Tensor nearest(const Tensor& z, const Tensor& codebook, std::int64_t rows_at_once) {
  const Tensor by_token = z.detach().movedim(1, 3);
  const Tensor rows = by_token.reshape({-1, z.size(1)});
  std::vector<Tensor> parts;
  for (const Tensor& some : rows.split(rows_at_once > 0 ? rows_at_once : rows.size(0))) {
    parts.push_back(nearest_of_rows(some, codebook));
  }
  const Tensor found = parts.size() == 1 ? parts.front() : at::cat(parts);
  return found.view({by_token.size(0), by_token.size(1), by_token.size(2)});
}

struct Decoder::Layers {
  Convolution from_codes, first;
  Middle middle;
  std::vector<Level> levels;  // the level of the smallest side first
  std::vector<Up> ups;        // behind each level but the last
  Ending ending;

  Layers(const ModelConfig& config, const Source& source, const Slices& slices)
      : from_codes(source.under("post_quant_conv")),
        first(source.under("decoder").under("conv_in")),
        middle(source.under("decoder").under("mid"), slices),
        ending(source.under("decoder")) {
    for (std::int64_t level = config.levels() - 1; level >= 0; --level) {
      const Source below = source.under("decoder").under("up").under(std::to_string(level));
      const std::int64_t before = std::min(level + 1, config.levels() - 1);
      levels.emplace_back(config, below, level, config.blocks + 1, changes(config, level, before), slices);
      if (level > 0) ups.push_back({Convolution(below.under("upsample").under("conv"))});
    }
  }

  Tensor operator()(const Tensor& codes) const {
    Tensor x = middle(first(from_codes(codes)));
    for (std::size_t i = 0; i < levels.size(); ++i) {
      x = levels[i](x);
      if (i < ups.size()) x = ups[i](x);
    }
    return ending(x);
  }
};

Decoder::Decoder(const ModelConfig& config, const Source& source, const Slices& slices, program::Precision precision)
    : slices_(slices),
      precision_(precision),
      codebook_(
          source.take(config.quantiser == Quantiser::Gumbel ? "quantize.embed.weight" : "quantize.embedding.weight")),
      layers_(std::make_unique<const Layers>(config, source, slices)) {
  const auto [least, greatest] = at::aminmax(codebook_, 0);
  least_ = least.view({1, -1, 1, 1});
  greatest_ = greatest.view({1, -1, 1, 1});
}

Decoder::~Decoder() = default;

Tensor Decoder::operator()(const Tensor& z) const {
  const Tensor codes = replace_grad(looked_up(codebook_, nearest(z, codebook_, slices_.codes)), z);
  const Tensor decoded = [&] {
    const train::AutocastGuard guard = torch_program::autocast(precision_);
    return (*layers_)(codes).to(z.scalar_type());
  }();
  return clamp_with_grad((decoded + 1) / 2, 0, 1);
}

struct Encoder::Layers {
  Convolution first;
  std::vector<Level> levels;  // the level of the largest side first
  std::vector<Down> downs;    // behind each level but the last
  Middle middle;
  Ending ending;
  Convolution to_codes;
  std::optional<Convolution> scores;  // Gumbel's score of each code

  Layers(const ModelConfig& config, const Source& source, const Slices& slices)
      : first(source.under("encoder").under("conv_in")),
        middle(source.under("encoder").under("mid"), slices),
        ending(source.under("encoder")),
        to_codes(source.under("quant_conv")) {
    if (config.quantiser == Quantiser::Gumbel) scores.emplace(source.under("quantize").under("proj"));
    for (std::int64_t level = 0; level < config.levels(); ++level) {
      const Source below = source.under("encoder").under("down").under(std::to_string(level));
      // The input of the first level has `channels` channels: a multiplier of 1.
      const bool changed = level == 0 ? config.multipliers.front() != 1 : changes(config, level, level - 1);
      levels.emplace_back(config, below, level, config.blocks, changed, slices);
      if (level + 1 < config.levels()) downs.push_back({Convolution(below.under("downsample").under("conv"))});
    }
  }

  Tensor operator()(const Tensor& picture) const {
    Tensor x = first(picture);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      x = levels[i](x);
      if (i < downs.size()) x = downs[i](x);
    }
    return to_codes(ending(middle(x)));
  }
};

Encoder::Encoder(const ModelConfig& config, const Source& source, const Slices& slices)
    : slices_(slices), layers_(std::make_unique<const Layers>(config, source, slices)) {}

Encoder::~Encoder() = default;

Tensor Encoder::operator()(const Tensor& picture, const Tensor& codebook) const {
  const at::NoGradGuard no_grad;
  const Tensor tokens = (*layers_)(picture * 2 - 1);
  if (!layers_->scores) return looked_up(codebook, nearest(tokens, codebook, slices_.codes)).contiguous();
  const Tensor scores = (*layers_->scores)(tokens);
  const Tensor noise = -at::empty_like(scores).exponential_().log();
  return looked_up(codebook, (scores + noise).argmax(1)).contiguous();
}

}  // namespace ullage::vqgan_clip
