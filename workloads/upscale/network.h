// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of an RRDB network, frozen, and its convolutions over bands of rows (row_stream.h puts them together).
//
//   picture -> first -> B blocks -> trunk -> + -> doublings -> high -> last -> picture of scale x scale
//                    '---------------------->'
//   block: three dense blocks, x + 0.2 * the last;  dense block: five convolutions, each of all before it, x + 0.2 *
//   the fifth

#include "torch_program/source.h"
#include "upscale/model_file.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

namespace ullage::upscale {

struct Convolution {
  at::Tensor weight, bias;
  bool leaky = true;  // a leaky ReLU of slope 0.2 follows

  // Returns rows [first, first + h) of the layer's output, (1,C,h,W), from rows [first - 1, first + h + 1) of its
  // input. Rows that do not lie in a picture of `height` rows are zeros, as a layer's padding is; if all are, nothing
  // is computed. Figures lie channel by channel (channels_last), so that bands of rows are joined without a reordering.
  at::Tensor operator()(const at::Tensor& input, std::int64_t first, std::int64_t height) const;
};

using DenseBlock = std::array<Convolution, 5>;
using Block = std::array<DenseBlock, 3>;

struct Network {
  NetworkShape shape;
  at::ScalarType type = at::kFloat;
  Convolution first;
  std::vector<Block> blocks;
  Convolution trunk;
  std::vector<Convolution> up;
  Convolution high, last;

  // Reads all weights; the file may go then.
  Network(const ModelFile& file, at::ScalarType type);
};

}  // namespace ullage::upscale
