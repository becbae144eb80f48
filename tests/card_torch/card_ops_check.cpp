// SPDX-License-Identifier: Apache-2.0
// Compares single ops on the card with the CPU: results, gradients, and what happens to sizes and storages.

#include "card_ops.h"
#include "card_programs.h"
#include "stand_in_card.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/autograd.h>
#include <torch/library.h>

#include <thread>
#include <vector>

namespace card_torch {
namespace {

class Card final : public testing::Environment {
  void SetUp() override { install(); }
};
const auto* const ops_card = testing::AddGlobalTestEnvironment(new Card);

struct Outcome {
  Tensor result, by_x, by_y;  // on the CPU
  std::vector<std::int64_t> strides;
};

// The weights of the sum differ from element to element; with equal weights many gradients would cancel out.
Outcome outcome(const Op& op, torch::Device device) {
  const Tensor x = drawn({2, 4, 6, 6}, device, 1).requires_grad_(), y = drawn({2, 4, 6, 6}, device, 2).requires_grad_();
  const Tensor result = op.run(x, y);
  (result * drawn(result.sizes(), device, 3)).sum().backward();
  const auto cpu = [](const Tensor& tensor) { return tensor.defined() ? tensor.detach().cpu() : torch::zeros({}); };
  EXPECT_EQ(result.device(), device);
  return {cpu(result), cpu(x.grad()), cpu(y.grad()), result.strides().vec()};
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_TRUE(a.result.equal(b.result)) << "forward";
  EXPECT_EQ(a.strides, b.strides);
  EXPECT_TRUE(a.by_x.equal(b.by_x)) << "by the first";
  EXPECT_TRUE(a.by_y.equal(b.by_y)) << "by the second";
}

TEST(CardOps, ForwardAndBackwardAsOnTheCpu) {
  for (const Op& op : differentiable_ops()) {
    SCOPED_TRACE(op.name);
    EXPECT_NO_THROW(expect_same(outcome(op, kCpu), outcome(op, kOnCard)));
  }
}

TEST(CardOps, OnTwoThreadsAtOnce) {
  const auto all = [](torch::Device device) {
    std::vector<Outcome> outcomes;
    for (const Op& op : differentiable_ops()) outcomes.push_back(outcome(op, device));
    return outcomes;
  };
  const std::vector<Outcome> expected = all(kCpu);
  std::vector<Outcome> one, other;
  std::thread beside([&] { one = all(kOnCard); });
  other = all(kOnCard);
  beside.join();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(differentiable_ops()[i].name);
    expect_same(expected[i], one[i]);
    expect_same(expected[i], other[i]);
  }
}

TEST(CardOps, AutocastAsOnTheCpu) {
  const auto of = [](torch::Device device) {
    at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
    at::autocast::set_autocast_enabled(device.type(), true);
    const Tensor x = drawn({2, 4, 8, 8}, device, 1).requires_grad_();
    const Tensor y = torch::conv2d(x, drawn({4, 4, 3, 3}, device, 2)).matmul(drawn({6, 6}, device, 3));
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device.type(), false);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    y.to(torch::kFloat).pow(2).sum().backward();
    return Outcome{y.detach().cpu(), x.grad().cpu(), {}, {}};
  };
  const Outcome cpu = of(kCpu), on_card = of(kOnCard);
  EXPECT_TRUE(cpu.result.equal(on_card.result));
  EXPECT_TRUE(cpu.by_x.equal(on_card.by_x));
}

TEST(CardOps, BackwardThroughBackward) {
  const auto of = [](torch::Device device) {
    const Tensor x = drawn({2, 3, 8, 8}, device, 1).requires_grad_(),
                 w = drawn({4, 3, 3, 3}, device, 2).requires_grad_();
    const Tensor y = torch::conv2d(x, w).tanh().sum();
    const Tensor slope = torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    (slope.norm() - 1).pow(2).backward();
    return Outcome{slope.detach().cpu(), x.grad().cpu(), w.grad().cpu(), {}};
  };
  expect_same(of(kCpu), of(kOnCard));
}

// Ops on lists of tensors, which optimizers with foreach and fused use.
TEST(CardOps, ListsAsOnTheCpu) {
  const auto of = [](torch::Device device) {
    std::vector<Tensor> parameters, gradients, mean, square, steps;
    for (std::uint64_t i = 0; i < 5; ++i) {
      parameters.push_back(drawn({3, 4}, device, 10 + i).t());
      gradients.push_back(drawn({4, 3}, device, 20 + i));
      for (auto* list : {&mean, &square}) list->push_back(torch::zeros({4, 3}, device));
      steps.push_back(torch::ones({}, device));
    }
    const std::uint64_t ops = counts().ops;
    at::_foreach_mul_(mean, 0.9);
    EXPECT_EQ(counts().ops - ops, device == kOnCard ? 1u : 0u);
    at::_foreach_add_(mean, gradients, 0.1);
    at::_foreach_addcmul_(square, gradients, gradients, 0.01);
    const std::vector<Tensor> root = at::_foreach_sqrt(square);
    at::_foreach_addcdiv_(parameters, mean, at::_foreach_add(root, 1e-3), -0.1);
    at::_fused_adam_(parameters, gradients, mean, square, {}, steps, 1e-2, 0.9, 0.99, 0.0, 1e-8, false, false);
    at::_fused_sgd_(parameters, gradients, mean, 0.0, 0.9, 0.1, 0.0, false, false, false);
    const Tensor norms = torch::stack(at::_foreach_norm(parameters));
    return Outcome{torch::stack(parameters).cpu(), norms.cpu(), torch::stack(square).cpu(), {}};
  };
  expect_same(of(kCpu), of(kOnCard));
}

TEST(CardOps, ViewsShareAStorage) {
  const Tensor x = torch::zeros({4, 6}, kOnCard);
  for (const Tensor& view : {x.view({24}), x.t(), x.narrow(0, 1, 2), x.chunk(2, 1)[1], x.unfold(1, 2, 2), x.detach(),
                             x.as_strided({2, 2}, {6, 1}, 3), x.expand({2, 4, 6}), x.view(torch::kInt)})
    EXPECT_TRUE(view.is_alias_of(x));
  x.narrow(1, 2, 2).fill_(1);
  x.t()[0].add_(2);
  EXPECT_EQ(x.sum().item<float>(), 16);
  EXPECT_TRUE(torch::view_as_complex(x.view({12, 2})).is_alias_of(x));
  EXPECT_FALSE(x.t().contiguous().is_alias_of(x));
}

Tensor twice(const Tensor& x, std::optional<torch::Device> /*device*/) { return x * 2; }
Tensor conjugate(const Tensor& x) { return x.conj(); }
Tensor second(const Tensor& /*x*/, const Tensor& y) { return y; }
bool is_same(const Tensor& x, const Tensor& y) { return x.is_same(y); }
Tensor product(const Tensor& x) { return x.mm(x); }

// An op also works if its library is loaded after the card was installed.
TEST(CardOps, OfOtherLibrariesRun) {
  torch::Library library(torch::Library::DEF, "card_check", std::nullopt, __FILE__, __LINE__);
  library.def("twice(Tensor x, Device? device=None) -> Tensor", torch::dispatch(torch::kCPU, TORCH_FN(twice)));
  library.def("conjugate(Tensor(a) x) -> Tensor(a)", torch::dispatch(torch::kCPU, TORCH_FN(conjugate)));
  library.def("second(Tensor x, Tensor(a) y) -> Tensor(a)", torch::dispatch(torch::kCPU, TORCH_FN(second)));
  library.def("is_same(Tensor x, Tensor y) -> bool", torch::dispatch(torch::kCPU, TORCH_FN(is_same)));
  library.def("product(Tensor x) -> Tensor", torch::dispatch(torch::kCPU, TORCH_FN(product)));
  const auto call = [](const char* name, torch::jit::Stack stack) {
    c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
    return stack.at(0);
  };
  const Tensor x = torch::ones({3}, kOnCard), complex = torch::view_as_complex(torch::ones({3, 2}, kOnCard));
  EXPECT_TRUE(call("card_check::twice", {x, {}}).toTensor().equal(x * 2));
  EXPECT_TRUE(call("card_check::twice", {x, kCpu}).toTensor().is_cpu());
  EXPECT_TRUE(call("card_check::twice", {x, kOnCard}).toTensor().is_cuda());
  const Tensor seen = call("card_check::conjugate", {complex}).toTensor();
  EXPECT_TRUE(seen.is_alias_of(complex));
  EXPECT_EQ(torch::imag(seen).sum().item<float>(), -3);
  const Tensor cpu = torch::ones({3});
  EXPECT_TRUE(call("card_check::second", {x, cpu}).toTensor().is_same(cpu));
  EXPECT_TRUE(call("card_check::second", {cpu, x}).toTensor().is_same(x));
  EXPECT_TRUE(call("card_check::is_same", {x, x}).toBool());
  EXPECT_FALSE(call("card_check::is_same", {x, x.detach()}).toBool());
  // A card's kernel calls no CPU ops, so autocast of the CPU to a lower precision must not affect it.
  at::autocast::set_autocast_enabled(at::kCPU, true);
  EXPECT_EQ(call("card_check::product", {torch::ones({2, 2}, kOnCard)}).toTensor().scalar_type(), torch::kFloat);
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

TEST(CardOps, ResultsTakeMemoryOfTheirOwn) {
  const Tensor x = drawn({5, 7}, kOnCard, 1);
  Tensor out = torch::empty({0}, kOnCard), transposed = torch::empty({7, 5}, kOnCard).t();
  torch::mul_out(out, x, x);
  torch::mul_out(transposed, x, x);
  EXPECT_TRUE(out.equal(x * x));
  EXPECT_EQ(out.storage().nbytes(), 35 * sizeof(float));
  EXPECT_EQ(out.storage().device(), kOnCard);
  EXPECT_TRUE(transposed.equal(out));
  EXPECT_EQ(transposed.stride(0), 1);
  Tensor grown = x.clone();
  grown.resize_({10, 7});
  EXPECT_TRUE(grown.narrow(0, 0, 5).equal(x));
  EXPECT_EQ(grown.storage().nbytes(), 70 * sizeof(float));
  Tensor other = torch::empty({0}, kOnCard);
  other.set_(x.storage(), 7, {2, 7}, {7, 1});
  EXPECT_TRUE(other.equal(x.narrow(0, 1, 2)));
  other.set_(out);
  EXPECT_TRUE(other.is_alias_of(out));
  other.set_();
  EXPECT_EQ(other.numel(), 0);
}

TEST(CardOps, CopiesBothWays) {
  const Tensor cpu = drawn({6, 5}, kCpu, 1), on_card = torch::zeros({5, 6}, kOnCard);
  on_card.t().copy_(cpu);
  EXPECT_TRUE(on_card.cpu().equal(cpu.t()));
  Tensor back = torch::zeros({5, 6}, torch::kDouble);
  back.copy_(on_card, /*non_blocking=*/true);
  EXPECT_TRUE(back.equal(cpu.t().to(torch::kDouble)));
  EXPECT_TRUE(back.is_cpu());
  EXPECT_TRUE(on_card.to(torch::kDouble).is_cuda());
  EXPECT_TRUE(torch::empty_like(on_card, torch::kCPU).is_cpu());
  EXPECT_TRUE(on_card.new_zeros({3}).is_cuda());
  EXPECT_TRUE((on_card + torch::ones({})).is_cuda());
  EXPECT_TRUE(torch::arange(3, kOnCard).equal(torch::tensor({0, 1, 2}, kOnCard)));
}

}  // namespace
}  // namespace card_torch
