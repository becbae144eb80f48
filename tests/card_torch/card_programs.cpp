// SPDX-License-Identifier: Apache-2.0
#include "card_programs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <tuple>

namespace card_torch {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct Pictures final : nn::Module {
  explicit Pictures(double p)
      : first(register_module("first", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)))),
        norm(register_module("norm", nn::BatchNorm2d(8))),
        up(register_module("up", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 12, 4).stride(2).padding(1)))),
        each(register_module("each", nn::Conv2d(nn::Conv2dOptions(12, 12, 3).groups(12)))),
        last(register_module("last", nn::Linear(12 * 7 * 7, 10))),
        drop(register_module("drop", nn::Dropout(p))) {}
  Tensor forward(const Tensor& x) {
    const Tensor small = torch::max_pool2d(F::leaky_relu(norm(first(x))), 2);
    const std::vector<Tensor> parts = up(small).chunk(3, 1);
    Tensor wide = torch::cat({parts[2], parts[0], parts[1]}, 1);
    wide.mul_(0.5);
    wide.narrow(1, 2, 4).add_(0.25);
    const Tensor half = F::interpolate(
        each(wide),
        F::InterpolateFuncOptions().size(std::vector<std::int64_t>{7, 7}).mode(torch::kBilinear).align_corners(false));
    return last(drop(half.flatten(1)));
  }
  nn::Conv2d first;
  nn::BatchNorm2d norm;
  nn::ConvTranspose2d up;
  nn::Conv2d each;
  nn::Linear last;
  nn::Dropout drop;
};

struct Words final : nn::Module {
  explicit Words(double p)
      : words(register_module("words", nn::Embedding(40, 16))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({16})))),
        threefold(register_module("threefold", nn::Linear(16, 48))),
        last(register_module("last", nn::Linear(16, 40))),
        p_(p) {}
  Tensor forward(const Tensor& x) {
    const Tensor read = norm(words(x));
    std::vector<Tensor> heads;
    for (const Tensor& part : threefold(read).chunk(3, -1))
      heads.push_back(part.view({x.size(0), x.size(1), 4, 4}).transpose(1, 2));
    const Tensor seen = torch::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, p_, /*is_causal=*/true);
    const Tensor mixed = torch::einsum("bhsd,bhtd->bst", {seen, heads[2]}).cumsum(-1).softmax(-1);
    const Tensor joined = seen.transpose(1, 2).reshape({x.size(0), x.size(1), 16}) + mixed.bmm(read);
    return last(torch::where(joined > 0, joined, joined * 0.1));
  }
  nn::Embedding words;
  nn::LayerNorm norm;
  nn::Linear threefold, last;
  double p_;
};

struct Series final : nn::Module {
  Tensor forward(const Tensor& x) { return std::get<0>(second(std::get<0>(first(x)))); }
  nn::LSTM first = register_module("first", nn::LSTM(nn::LSTMOptions(6, 8).num_layers(2)));
  nn::GRU second = register_module("second", nn::GRU(nn::GRUOptions(8, 5).bidirectional(true)));
};

void end(Named& results, const nn::Module& net) {
  for (const auto& item : net.named_parameters()) {
    results.emplace_back(item.key(), item.value().detach().cpu());
    results.emplace_back(item.key() + "/gradient", item.value().grad().cpu());
  }
  for (const auto& item : net.named_buffers()) results.emplace_back(item.key(), item.value().cpu());
}

template <class Optimizer, class Options, class Loss>
Named train(nn::Module& net, const Options& options, const Program& program, const Loss& loss_of) {
  Named results;
  Optimizer optimizer(net.parameters(), options);
  for (int step = 0; step < program.steps; ++step) {
    optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
    const Tensor loss = loss_of(static_cast<std::uint64_t>(step));
    loss.backward();
    nn::utils::clip_grad_norm_(net.parameters(), 1.0);
    optimizer.step();
    results.emplace_back("loss " + std::to_string(step), torch::tensor(loss.template item<float>()));
  }
  end(results, net);
  return results;
}

}  // namespace

Tensor drawn(at::IntArrayRef sizes, torch::Device device, std::uint64_t seed) {
  return torch::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed)).to(device);
}

Named train_on_pictures(torch::Device device, const Program& program) {
  torch::manual_seed(program.seed);
  Pictures net(program.dropout);
  net.to(device);
  const auto options = torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3);
  return train<torch::optim::SGD>(net, options, program, [&](std::uint64_t step) {
    Tensor x = drawn({4, 3, 16, 16}, device, 10 + step);
    if (program.channels_last) x = x.contiguous(at::MemoryFormat::ChannelsLast);
    const Tensor label = (drawn({4}, kCpu, 20 + step) * 3).abs().toType(torch::kLong).remainder(10).to(device);
    return F::cross_entropy(net.forward(x), label);
  });
}

Named train_on_words(torch::Device device, const Program& program) {
  torch::manual_seed(program.seed);
  Words net(program.dropout);
  net.to(device);
  return train<torch::optim::Adam>(net, torch::optim::AdamOptions(1e-2), program, [&](std::uint64_t step) {
    const Tensor words = (drawn({3, 9}, kCpu, 30 + step) * 9).abs().toType(torch::kLong).remainder(40).to(device);
    const Tensor rows = net.forward(words).flatten(0, 1), next = words.roll({-1}, {1}).flatten();
    const Tensor order = std::get<1>(rows.detach().sum(1).sort(/*dim=*/0, /*descending=*/true));
    const Tensor kept = next.index_select(0, order) > 2;
    return F::cross_entropy(rows.index_select(0, order).index({kept}), next.index_select(0, order).masked_select(kept));
  });
}

Named train_on_series(torch::Device device, const Program& program) {
  torch::manual_seed(program.seed);
  Series net;
  net.to(device);
  return train<torch::optim::Adam>(net, torch::optim::AdamOptions(1e-2), program, [&](std::uint64_t step) {
    return net.forward(drawn({5, 3, 6}, device, 40 + step)).pow(2).mean();
  });
}

testing::AssertionResult same(const Named& a, const Named& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " results, and " << b.size();
  auto differ = testing::AssertionFailure() << "these differ:";
  bool any = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].first == b[i].first && a[i].second.equal(b[i].second)) continue;
    any = true;
    differ << ' ' << a[i].first;
  }
  return any ? differ : testing::AssertionSuccess();
}

}  // namespace card_torch
