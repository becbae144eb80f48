// SPDX-License-Identifier: Apache-2.0
// train_parity CASE IN OUT
//
// Reads a dict of tensors that test_parity.py saved, trains as CASE says with ullage::train, and writes a dict of
// tensors. The script does the same with torch.amp and torch.utils.checkpoint.

#include "ullage/train/accumulation.h"
#include "ullage/train/autocast_guard.h"
#include "ullage/train/checkpoint.h"
#include "ullage/train/grad_scaler.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace ullage::train;
using torch::Tensor;
using Tensors = std::map<std::string, Tensor>;

Tensors read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  Tensors tensors;
  for (const auto& item : torch::jit::pickle_load(bytes).toGenericDict())
    tensors.emplace(item.key().toStringRef(), item.value().toTensor());
  return tensors;
}

void write(const char* path, const Tensors& tensors) {
  c10::Dict<std::string, Tensor> dict;
  for (const auto& [name, tensor] : tensors) dict.insert(name, tensor);
  const std::vector<char> bytes = torch::jit::pickle_save(dict);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Tensor trained(const Tensors& in, const char* name) { return in.at(name).clone().requires_grad_(); }

// 200 steps with infinities: two optimizers, two losses, clipping every third step, a new scaler from a saved one.
Tensors scaler(const Tensors& in) {
  Tensor w1 = trained(in, "w1"), w2 = trained(in, "w2");
  torch::optim::SGD first({w1}, torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD second({w2}, torch::optim::SGDOptions(0.05).momentum(0.5).weight_decay(0.01));
  const GradScaler::Settings settings{
      .init_scale = 1024, .growth_factor = 1.7, .backoff_factor = 0.4, .growth_interval = 5};
  GradScaler one(torch::kCPU, settings), two(torch::kCPU);
  GradScaler* used = &one;
  std::vector<Tensor> seen_w1, seen_w2, numbers;
  for (std::int64_t i = 0; i < in.at("x").size(0); ++i) {
    first.zero_grad(), second.zero_grad();
    Tensor loss;
    {
      const AutocastGuard half(torch::kCPU, torch::kHalf);
      loss = (torch::mm(torch::tanh(torch::mm(in.at("x")[i], w1)), w2) - in.at("y")[i]).pow(2).mean();
    }
    const auto scaled = used->scale(std::vector{loss, w1.sum() * in.at("inject1")[i] + w2.sum() * in.at("inject2")[i]});
    scaled[0].backward({}, true);
    scaled[1].backward();
    if (i % 3 == 0) used->unscale_(first);
    const bool a = used->step(first), b = used->step(second);
    const bool said = !used->update().ok();
    numbers.push_back(torch::tensor(
        {used->get_scale(), static_cast<double>(used->get_growth_tracker()), a ? 1. : 0., b ? 1. : 0., said ? 1. : 0.},
        torch::kFloat64));
    seen_w1.push_back(w1.detach().clone()), seen_w2.push_back(w2.detach().clone());
    if (i == 99) {
      if (!two.load_state_dict(one.state_dict())) return {};
      used = &two;
    }
  }
  return {{"w1", torch::stack(seen_w1)}, {"w2", torch::stack(seen_w2)}, {"numbers", torch::stack(numbers)}};
}

// Writes the results of ops inside, between and after guards, and the gradients.
Tensors guard(const Tensors& in) {
  Tensors out;
  Tensor w = trained(in, "w");
  const Tensor x = in.at("x");
  const auto note = [&](const std::string& where) {
    out[where + ".mm"] = torch::mm(x, w).detach();
    out[where + ".softmax"] = torch::softmax(torch::mm(x, w), 1).detach();
    out[where + ".mixed"] = (torch::mm(x, w) + x).detach();
    out[where + ".state"] = torch::tensor({at::autocast::is_autocast_enabled(torch::kCPU) ? 1 : 0,
                                           static_cast<int>(at::autocast::get_autocast_dtype(torch::kCPU)),
                                           at::autocast::is_autocast_cache_enabled() ? 1 : 0});
  };
  const auto write_weight = [&] {
    const torch::NoGradGuard no_grad;
    w.mul_(1.5);
  };
  note("before");
  {
    const AutocastGuard outer(torch::kCPU, torch::kBFloat16);
    note("outer");
    {
      const AutocastGuard inner(torch::kCPU);
      note("inner");
      write_weight();
      note("inner.written");
      const AutocastGuard other(torch::kCPU, torch::kHalf, true, /*cache_enabled=*/false);  // the cache has bfloat16
      note("other");
      const AutocastGuard off(torch::kCPU, std::nullopt, false, false);
      note("off");
    }
    note("outer.again");
    out["loss"] = torch::mm(torch::tanh(torch::mm(x, w)), w).to(torch::kFloat32).pow(2).mean();
    write_weight();
    note("outer.written");
  }
  note("after");
  const AutocastGuard again(torch::kCPU);
  note("again");
  out.at("loss").backward();
  out["loss"] = out.at("loss").detach();
  out["gradient"] = w.grad();
  return out;
}

Tensors checkpoints(const Tensors& in) {
  Tensors out;
  for (const bool autocast : {false, true}) {
    Tensor w = trained(in, "w"), v = trained(in, "v"), x = trained(in, "x");
    int inner_calls = 0, outer_calls = 0, ends = 0;
    torch::manual_seed(21);
    Tensor loss;
    {
      const AutocastGuard bf16(torch::kCPU, torch::kBFloat16, autocast);
      const auto inner = [&](const Tensor& h) {
        ++inner_calls;
        return torch::dropout(torch::tanh(torch::mm(h, w)), 0.4, true);
      };
      const auto outer = [&](const Tensor& h, double factor) {
        ++outer_calls;
        const Tensor a = checkpoint(inner, h * factor);
        const Tensor b = checkpoint(inner, a);
        const auto both = std::pair{torch::mm(torch::dropout(b, 0.2, true), v), torch::exp(-a.pow(2))};
        ++ends;
        return std::pair{both.first * 2, both.second};
      };
      const auto [y, z] = checkpoint(outer, x, 0.5);
      loss = y.to(torch::kFloat32).pow(2).mean() + z.to(torch::kFloat32).mean();
      loss.backward({}, /*retain_graph=*/true);
      loss.backward();
    }
    const std::string name = autocast ? "autocast." : "plain.";
    out[name + "loss"] = loss.detach();
    out[name + "w"] = w.grad(), out[name + "v"] = v.grad(), out[name + "x"] = x.grad();
    out[name + "calls"] = torch::tensor({inner_calls, outer_calls, ends});
    out[name + "next"] = torch::randn({5});
  }
  return out;
}

// Windows of a batch in micro-batches: a loss over a mask and one over samples, with a scaler, clipped.
Tensors accumulation(const Tensors& in) {
  torch::nn::Linear unused(1, 1);
  Tensor w1 = trained(in, "w1"), w2 = trained(in, "w2");
  torch::optim::SGD sgd({w1, w2}, torch::optim::SGDOptions(0.2).momentum(0.9));
  GradScaler scaler(torch::kCPU, {.init_scale = 512, .growth_interval = 4});
  auto window = Accumulation::create(*unused, {.clip_norm = 0.3, .scaler = &scaler});
  if (!window) return {};
  std::vector<Tensor> norms;
  Tensor first_w1, first_w2;
  for (std::int64_t i = 0; i < in.at("x").size(0); ++i) {
    const Tensor x = in.at("x")[i], y = in.at("y")[i], mask = in.at("mask")[i];
    sgd.zero_grad();
    if (!window->begin({{"samples", x.size(0)}, {"mask", mask.sum().item<double>()}})) return {};
    const auto slices = micro_batches(x.size(0), 4);
    for (const Slice& s : slices.value()) {
      const Tensor h = torch::tanh(torch::matmul(s.of(x), w1)), m = s.of(mask);
      const auto a = window->weigh(((torch::matmul(h, w2).squeeze(-1) - s.of(y)).pow(2) * m).sum() / m.sum(),
                                   m.sum().item<double>(), "mask");
      const auto b = window->weigh(h.pow(2).mean(), static_cast<double>(s.size()));
      if (!a || !b || !window->backward(a->defined() ? *a + *b : *b)) return {};
    }
    if (i == 0) first_w1 = w1.grad() / scaler.get_scale(), first_w2 = w2.grad() / scaler.get_scale();
    const auto end = window->step(sgd);
    if (!end || !end->scaler) return {};
    norms.push_back(torch::tensor(end->grad_norms, torch::kFloat64));
  }
  return {{"w1", w1.detach()},    {"w2", w2.detach()},    {"norms", torch::stack(norms)},
          {"first_w1", first_w1}, {"first_w2", first_w2}, {"scale", torch::tensor(scaler.get_scale())}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<Tensors(const Tensors&)>> cases = {
      {"scaler", scaler}, {"guard", guard}, {"checkpoints", checkpoints}, {"accumulation", accumulation}};
  if (argc != 4 || !cases.contains(argv[1])) return std::fprintf(stderr, "usage: train_parity CASE IN OUT\n"), 2;
  const Tensors out = cases.at(argv[1])(read(argv[2]));
  write(argv[3], out);
  return out.empty() ? 1 : 0;
}
