// SPDX-License-Identifier: Apache-2.0
// A transformer that predicts the next word, after GPT-2: norms before the sublayers, learnt positions, fused
// attention.

#include "subjects.h"

#include <torch/optim/adam.h>

namespace bench_nets {
namespace {

constexpr std::int64_t kWords = 8192;
constexpr std::int64_t kHeads = 8;

class LayerImpl final : public nn::Module {
 public:
  explicit LayerImpl(std::int64_t width)
      : width_(width),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})))),
        qkv_(register_module("qkv", nn::Linear(width, 3 * width))),
        out_(register_module("out", nn::Linear(width, width))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})))),
        wide_(register_module("wide", nn::Linear(width, 4 * width))),
        narrow_(register_module("narrow", nn::Linear(4 * width, width))) {}

  // x and the result are batch x length x width.
  Tensor forward(const Tensor& x) {
    const std::int64_t batch = x.size(0);
    const std::int64_t length = x.size(1);
    const Tensor heads = qkv_(norm1_(x)).view({batch, length, 3, kHeads, width_ / kHeads});
    const std::vector<Tensor> qkv = heads.permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor seen = torch::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, /*is_causal=*/true);
    const Tensor h = x + out_(seen.transpose(1, 2).reshape({batch, length, width_}));
    return h + narrow_(torch::gelu(wide_(norm2_(h))));
  }

 private:
  const std::int64_t width_;
  nn::LayerNorm norm1_;
  nn::Linear qkv_;
  nn::Linear out_;
  nn::LayerNorm norm2_;
  nn::Linear wide_;
  nn::Linear narrow_;
};
TORCH_MODULE(Layer);

class GptImpl final : public nn::Module {
 public:
  GptImpl(std::int64_t width, std::int64_t layers, std::int64_t length)
      : words_(register_module("words", nn::Embedding(kWords, width))),
        places_(register_module("places", nn::Embedding(length, width))),
        layers_(register_module("layers", nn::Sequential())),
        norm_(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})))),
        head_(register_module("head", nn::Linear(nn::LinearOptions(width, kWords).bias(false)))) {
    for (std::int64_t i = 0; i < layers; ++i) layers_->push_back(Layer(width));
  }

  // ids is batch x length; the result is batch x length x words.
  Tensor forward(const Tensor& ids) {
    const Tensor x = words_(ids) + places_(torch::arange(ids.size(1)));
    return head_(norm_(layers_->forward(x)));
  }

 private:
  nn::Embedding words_;
  nn::Embedding places_;
  nn::Sequential layers_;
  nn::LayerNorm norm_;
  nn::Linear head_;
};
TORCH_MODULE(Gpt);

// The width must be a multiple of kHeads.
Subject make(const Sizes& sizes) {
  const auto batch = sizes.batch.value_or(8);
  const auto length = sizes.length.value_or(256);
  Gpt net(sizes.width.value_or(512), sizes.layers.value_or(12), length);
  const Tensor ids = torch::randint(kWords, {batch, length}, torch::kInt64);
  const Tensor next = torch::randint(kWords, {batch * length}, torch::kInt64);
  const auto loss = [=]() mutable { return torch::cross_entropy_loss(net(ids).view({-1, kWords}), next); };
  auto training =
      std::make_unique<nets::SimpleTraining<torch::optim::Adam>>(net.ptr(), torch::optim::AdamOptions(1e-4), loss);
  return {net.ptr(), std::move(training)};
}

}  // namespace

Net gpt() { return {make, {"batch", "length", "layers", "width"}}; }

}  // namespace bench_nets
