// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of an RRDB network, frozen, and its convolutions over bands of rows (row_stream.h puts them together).
//
//   picture -> first -> B blocks -> trunk -> + -> doublings -> high -> last -> picture of scale x scale
//                    '---------------------->'
// A block is three dense blocks in a row and returns its input + 0.2 * the output of the third. A dense block is five
// convolutions. Each reads the block's input and the outputs of all convolutions before it. The dense block returns its
// input + 0.2 * the output of the fifth.

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
  // input. Output rows outside the picture, which has `height` rows, are zeros, because the next layer reads them as
  // its padding. If all rows are outside, nothing is computed. In memory the channels of a pixel are neighbours
  // (channels_last), so a band of rows is contiguous, and bands are joined without a reordering.
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

  // Reads all weights. `file` may be destroyed afterwards.
  Network(const ModelFile& file, at::ScalarType type);
};

}  // namespace ullage::upscale
