// SPDX-License-Identifier: Apache-2.0
// Nets over sequences: transformers and an LSTM with clipped gradients. Attention takes the fused kernel if there is no
// dropout, else full matrices.

#include "training.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

namespace nets {
namespace {

struct TransformerShape {
  std::int64_t words, width, heads, layers, batch, length;
  double dropout;
};

class LayerImpl final : public nn::Module {
 public:
  explicit LayerImpl(const TransformerShape& shape)
      : shape_(shape),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({shape.width})))),
        qkv_(register_module("qkv", nn::Linear(shape.width, 3 * shape.width))),
        out_(register_module("out", nn::Linear(shape.width, shape.width))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({shape.width})))),
        wide_(register_module("wide", nn::Linear(shape.width, 4 * shape.width))),
        narrow_(register_module("narrow", nn::Linear(4 * shape.width, shape.width))) {}

  // `x` and the result: batch x length x width.
  Tensor forward(const Tensor& x) {
    const std::int64_t batch = x.size(0);
    const std::int64_t length = x.size(1);
    const Tensor heads = qkv_(norm1_(x)).view({batch, length, 3, shape_.heads, shape_.width / shape_.heads});
    const std::vector<Tensor> qkv = heads.permute({2, 0, 3, 1, 4}).unbind(0);
    Tensor seen = torch::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, shape_.dropout, /*is_causal=*/true);
    seen = out_(seen.transpose(1, 2).reshape({batch, length, shape_.width}));
    const Tensor h = x + torch::dropout(seen, shape_.dropout, is_training());
    return h + torch::dropout(narrow_(torch::gelu(wide_(norm2_(h)))), shape_.dropout, is_training());
  }

 private:
  const TransformerShape shape_;
  nn::LayerNorm norm1_;
  nn::Linear qkv_;
  nn::Linear out_;
  nn::LayerNorm norm2_;
  nn::Linear wide_;
  nn::Linear narrow_;
};
TORCH_MODULE(Layer);

class TransformerImpl final : public nn::Module {
 public:
  explicit TransformerImpl(const TransformerShape& shape)
      : embedding_(register_module("embedding", nn::Embedding(shape.words, shape.width))),
        layers_(register_module("layers", nn::Sequential())),
        head_(register_module("head", nn::Linear(shape.width, shape.words))) {
    for (std::int64_t i = 0; i < shape.layers; ++i) layers_->push_back(Layer(shape));
  }

  // ids: batch x length; the result: batch x length x words.
  Tensor forward(const Tensor& ids) { return head_(layers_->forward(embedding_(ids))); }

 private:
  nn::Embedding embedding_;
  nn::Sequential layers_;
  nn::Linear head_;
};
TORCH_MODULE(Transformer);

std::unique_ptr<Training> make_transformer(const TransformerShape& shape) {
  Transformer net(shape);
  const auto loss = [=]() mutable {
    const Tensor ids = torch::randint(shape.words, {shape.batch, shape.length + 1}, torch::kInt64);
    const Tensor told = net(ids.narrow(1, 0, shape.length));
    return torch::cross_entropy_loss(told.flatten(0, 1), ids.narrow(1, 1, shape.length).reshape({-1}));
  };
  return std::make_unique<SimpleTraining<torch::optim::Adam>>(net.ptr(), torch::optim::AdamOptions(1e-3), loss);
}

std::unique_ptr<Training> make_plain_transformer(const Sizes& sizes) {
  return make_transformer({.words = at_scale<std::int64_t>(sizes.scale, 512, 2048, 4096),
                           .width = at_scale<std::int64_t>(sizes.scale, 64, 256, 512),
                           .heads = 4,
                           .layers = at_scale<std::int64_t>(sizes.scale, 2, 3, 4),
                           .batch = sizes.batch.value_or(at_scale(sizes.scale, 4, 6, 8)),
                           .length = sizes.length.value_or(at_scale(sizes.scale, 96, 128, 256)),
                           .dropout = 0});
}

std::unique_ptr<Training> make_transformer_dropout(const Sizes& sizes) {
  return make_transformer({.words = at_scale<std::int64_t>(sizes.scale, 256, 1024, 2048),
                           .width = at_scale<std::int64_t>(sizes.scale, 64, 192, 384),
                           .heads = 4,
                           .layers = at_scale<std::int64_t>(sizes.scale, 2, 2, 4),
                           .batch = sizes.batch.value_or(at_scale(sizes.scale, 4, 6, 8)),
                           .length = sizes.length.value_or(at_scale(sizes.scale, 96, 160, 256)),
                           .dropout = 0.1});
}

class RecurrentImpl final : public nn::Module {
 public:
  RecurrentImpl(std::int64_t inputs, std::int64_t hidden, std::int64_t outputs)
      : lstm_(register_module("lstm", nn::LSTM(nn::LSTMOptions(inputs, hidden).num_layers(2).dropout(0.2)))),
        head_(register_module("head", nn::Linear(hidden, outputs))) {}

  // x: length x batch x inputs; the result: length x batch x outputs.
  Tensor forward(const Tensor& x) { return head_(std::get<0>(lstm_(x))); }

 private:
  nn::LSTM lstm_;
  nn::Linear head_;
};
TORCH_MODULE(Recurrent);

std::unique_ptr<Training> make_lstm(const Sizes& sizes) {
  const auto hidden = at_scale<std::int64_t>(sizes.scale, 128, 320, 512);
  const auto length = sizes.length.value_or(at_scale(sizes.scale, 16, 48, 96));
  const auto batch = sizes.batch.value_or(at_scale(sizes.scale, 16, 40, 64));
  const std::int64_t inputs = hidden / 2;
  Recurrent net(inputs, hidden, inputs);
  const auto loss = [=]() mutable {
    const Tensor series = torch::randn({length + 1, batch, inputs});
    return torch::mse_loss(net(series.narrow(0, 0, length)), series.narrow(0, 1, length));
  };
  const auto clip = [](const std::vector<Tensor>& parameters) {
    nn::utils::clip_grad_norm_(parameters, /*max_norm=*/0.05);
  };
  return std::make_unique<SimpleTraining<torch::optim::Adam>>(net.ptr(), torch::optim::AdamOptions(1e-3), loss, clip);
}

}  // namespace

void add_sequential(Nets& nets) {
  nets["transformer"] = {make_plain_transformer, {"batch", "length"}};
  nets["transformer_dropout"] = {make_transformer_dropout, {"batch", "length"}};
  nets["lstm"] = {make_lstm, {"batch", "length"}};
}

}  // namespace nets
