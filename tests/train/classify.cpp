// SPDX-License-Identifier: Apache-2.0
// train_classify NET STATE_DICT IN OUT
//
// Loads a state_dict into NET with ullage::train. Writes, as a dict of tensors, what test_classifiers.py compares with
// the same network of Python: outputs, a step of training, and the weights that a seed gives. IN has "x" and "y".

#include "ullage/train/classifiers.h"
#include "ullage/train/state_dict.h"

#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace ullage::train;

Classifier made(const std::string& net) {
  torch::manual_seed(7);
  return net == "efficientnet_b0" ? efficientnet_b0() : mobilenet_v2();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "usage: train_classify NET STATE_DICT IN OUT\n"), 2;
  Classifier net = made(argv[1]);
  c10::Dict<std::string, at::Tensor> out;
  for (const auto& item : net->named_parameters()) out.insert("seeded." + item.key(), item.value().detach().clone());
  if (const auto loaded = load_state_dict(*net, argv[2]); !loaded)
    return std::fprintf(stderr, "%s\n", loaded.error().text().c_str()), 1;
  for (const auto& item : net->named_buffers()) out.insert("buffer." + item.key(), item.value().clone());

  std::ifstream file(argv[3], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const auto in = torch::jit::pickle_load(bytes).toGenericDict();
  const at::Tensor x = in.at("x").toTensor(), y = in.at("y").toTensor();
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const std::string name = type == torch::kFloat32 ? "float32." : "float64.";
    net->to(type);
    net->eval();
    {
      const torch::NoGradGuard no_grad;
      out.insert(name + "eval", net->forward(x.to(type)));
    }
    net->train();
    net->zero_grad();
    torch::manual_seed(3);
    const at::Tensor loss = torch::cross_entropy_loss(net->forward(x.to(type)), y);
    loss.backward();
    out.insert(name + "loss", loss.detach());
    for (const auto& item : net->named_parameters())
      out.insert(name + "grad." + item.key(), item.value().grad().clone());
    for (const auto& item : net->named_buffers()) out.insert(name + "after." + item.key(), item.value().clone());
  }
  const std::vector<char> saved = torch::jit::pickle_save(out);
  std::ofstream(argv[4], std::ios::binary).write(saved.data(), static_cast<std::streamsize>(saved.size()));
  return 0;
}
