// SPDX-License-Identifier: Apache-2.0
#pragma once

// Training programs that run on the card and on the CPU, and a comparison that says what differs. Values are drawn on
// the CPU from a seed and copied to the device.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace card_torch {

using torch::Tensor;
using Named = std::vector<std::pair<std::string, Tensor>>;  // the tensors are on the CPU

inline const torch::Device kCpu{torch::kCPU};
inline const torch::Device kOnCard{torch::kCUDA, 0};

struct Program {
  int steps = 4;
  bool channels_last = false;
  double dropout = 0;
  std::uint64_t seed = 1;
};

// A convolutional net with SGD. Returns the losses, and the parameters, buffers and gradients at the end.
Named train_on_pictures(torch::Device device, const Program& program = {});
// Embedding, attention, selections by masks and indices, with Adam.
Named train_on_words(torch::Device device, const Program& program = {});
// LSTM and GRU.
Named train_on_series(torch::Device device, const Program& program = {});

// Drawn on the CPU from the seed.
Tensor drawn(at::IntArrayRef sizes, torch::Device device, std::uint64_t seed);

testing::AssertionResult same(const Named& a, const Named& b);

}  // namespace card_torch
