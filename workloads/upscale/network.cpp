// SPDX-License-Identifier: Apache-2.0
#include "upscale/network.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>

namespace ullage::upscale {
namespace {

using at::Tensor;

constexpr double kSlope = 0.2;

Convolution take(const torch_program::Source& source, const std::string& name, bool leaky = true) {
  const torch_program::Source layer = source.under(name);
  return {layer.take("weight", 1, at::MemoryFormat::ChannelsLast), layer.take("bias"), leaky};
}

}  // namespace

Tensor Convolution::operator()(const Tensor& input, std::int64_t first, std::int64_t height) const {
  const std::int64_t rows = input.size(2) - 2;
  if (first + rows <= 0 || first >= height) {
    return at::empty({1, weight.size(0), rows, input.size(3)}, input.options(), at::MemoryFormat::ChannelsLast).zero_();
  }
  Tensor output = at::conv2d(input, weight, bias, 1, at::IntArrayRef({0, 1}));
  if (leaky) at::leaky_relu_(output, kSlope);
  if (first < 0) output.narrow(2, 0, -first).zero_();
  if (first + rows > height) output.narrow(2, height - first, first + rows - height).zero_();
  return output;
}

Network::Network(const ModelFile& file, at::ScalarType of) : shape(file.shape), type(of) {
  const torch_program::Source source(file.weights, type, "rrdb");
  first = take(source, file.names.first, false);
  auto name = file.names.dense.begin();
  for (std::int64_t i = 0; i < shape.blocks; ++i) {
    Block& block = blocks.emplace_back();
    for (DenseBlock& dense : block) {
      for (Convolution& one : dense) one = take(source, *name++, &one != &dense.back());
    }
  }
  trunk = take(source, file.names.trunk, false);
  for (const std::string& one : file.names.up) up.push_back(take(source, one));
  high = take(source, file.names.high);
  last = take(source, file.names.last, false);
}

}  // namespace ullage::upscale
