// SPDX-License-Identifier: Apache-2.0
// optimizers_program KIND IN OUT: takes steps from given gradients, for test_optimizers_in_cpp.py. IN is a safetensors
// file of x/<tensor>, gradient/<step>/<tensor> and rates (one a step, F64); OUT gets x/<step>/<tensor>.

#include "torch_program/optimizer.h"
#include "torch_program/tensor_file.h"
#include "ullage/train/as_tensor.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <map>
#include <string>

namespace {

using namespace ullage;
using Kind = program::OptimizerKind;

const std::map<std::string, Kind> kKinds = {{"Adam", Kind::Adam},         {"AdamW", Kind::AdamW},
                                            {"Adagrad", Kind::Adagrad},   {"Adamax", Kind::Adamax},
                                            {"DiffGrad", Kind::DiffGrad}, {"AdamP", Kind::AdamP},
                                            {"RAdam", Kind::RAdam},       {"RMSprop", Kind::RmsProp},
                                            {"SGD", Kind::Sgd},           {"SGD momentum", Kind::SgdMomentum}};

Status run(Kind kind, const std::string& in, const std::string& out) {
  auto read = read::Weights::open(in);
  if (!read) return read.error();
  const auto file = std::make_shared<const read::Weights>(*std::move(read));
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; file->find("x/" + std::to_string(i)) != nullptr; ++i) {
    tensors.push_back(train::as_tensor(file, "x/" + std::to_string(i)).clone().requires_grad_());
  }
  const auto optimizer = torch_program::make_optimizer(kind, tensors);
  const at::Tensor rates = train::as_tensor(file, "rates");
  std::map<std::string, at::Tensor> seen;
  for (std::int64_t step = 0; step < rates.numel(); ++step) {
    const std::string place = std::to_string(step) + "/";
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].mutable_grad() = train::as_tensor(file, "gradient/" + place + std::to_string(i)).clone();
    }
    optimizer->step(rates.const_data_ptr<double>()[step]);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      seen["x/" + place + std::to_string(i)] = tensors[i].detach().clone();
    }
  }
  return torch_program::write_tensors(out, seen);
}

}  // namespace

int main(int argc, char** argv) {
  const auto kind = argc == 4 ? kKinds.find(argv[1]) : kKinds.end();
  if (kind == kKinds.end()) return std::fprintf(stderr, "usage: optimizers_program KIND IN OUT\n"), 2;
  at::set_num_threads(1);
  const Status done = run(kind->second, argv[2], argv[3]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().text().c_str());
  return done ? 0 : 1;
}
