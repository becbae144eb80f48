// SPDX-License-Identifier: Apache-2.0
// The example of docs/train.md: a small residual net learns to tell whether two numbers of a sequence are equal. It
// trains in mixed precision, checkpoints its blocks, and takes each batch of 30 sequences in micro-batches of 8.
#include <ullage/train/accumulation.h>
#include <ullage/train/autocast_guard.h>
#include <ullage/train/checkpoint.h>
#include <ullage/train/grad_scaler.h>

#include <torch/torch.h>

#include <cstdio>

namespace train = ullage::train;

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t width)
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return x + down(torch::dropout(torch::gelu(up(norm(x))), 0.1, is_training()));
  }
  torch::nn::LayerNorm norm;
  torch::nn::Linear up, down;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    for (int i = 0; i < 3; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block(32)));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = first(x);
    // Backward runs each block once more, instead of keeping what it computes.
    for (Block& block : blocks) x = train::checkpoint(block, x);
    return last(x).squeeze(-1);
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 32));
  std::vector<Block> blocks;
  torch::nn::Linear last = register_module("last", torch::nn::Linear(32, 1));
};
TORCH_MODULE(Net);

// A step on one batch: x is [samples, length, 2], y and mask [samples, length]. Returns the mean loss over the mask.
ullage::Result<double> step(Net& net, torch::optim::Optimizer& optimizer, train::Accumulation& window,
                            const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& mask) {
  optimizer.zero_grad();
  const double whole = mask.sum().item<double>();  // the loss is a mean over what the mask keeps, not over samples
  ULLAGE_TRY(window.begin({{"tokens", whole}}));
  ULLAGE_TRY_VALUE(const auto slices, train::micro_batches(x.size(0), 8));
  double sum = 0;
  for (const train::Slice& slice : slices) {  // 8, 8, 8 and 6 samples
    const torch::Tensor m = slice.of(mask);
    const double part = m.sum().item<double>();
    torch::Tensor loss;
    {
      const train::AutocastGuard half(torch::kCPU, torch::kHalf);
      const torch::Tensor out = net->forward(slice.of(x)).to(torch::kFloat32);
      loss = (torch::binary_cross_entropy_with_logits(out, slice.of(y), {}, {}, at::Reduction::None) * m).sum() / part;
    }
    ULLAGE_TRY_VALUE(const torch::Tensor weighed, window.weigh(loss, part, "tokens"));
    ULLAGE_TRY(window.backward(weighed));
    if (part > 0) sum += loss.item<double>() * part;
  }
  ULLAGE_TRY_VALUE(const auto end, window.step(optimizer));  // unscales, clips, steps unless there is an inf or nan
  ULLAGE_TRY(end.scaler);                                    // an error if 20 windows in a row were skipped
  return sum / whole;
}

int main() {
  torch::manual_seed(1);
  Net net;
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(3e-3));
  train::GradScaler scaler(torch::kCPU);
  auto window = train::Accumulation::create(*net, {.clip_norm = 1.0, .scaler = &scaler});
  if (!window) return std::fprintf(stderr, "%s\n", window.error().text().c_str()), 1;
  double first = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    const torch::Tensor x = torch::randint(0, 3, {30, 5, 2}).to(torch::kFloat32);
    const torch::Tensor y = (x.select(2, 0) == x.select(2, 1)).to(torch::kFloat32);
    const torch::Tensor mask = torch::rand({30, 5}).lt(0.7).to(torch::kFloat32);
    const auto loss = step(net, optimizer, *window, x, y, mask);
    if (!loss) return std::fprintf(stderr, "%s\n", loss.error().text().c_str()), 1;
    (i == 0 ? first : last) = *loss;
  }
  std::printf("loss %.3f, then %.3f; scale %.0f\n", first, last, scaler.get_scale());
  return last < first / 2 ? 0 : 1;
}
