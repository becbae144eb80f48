// SPDX-License-Identifier: Apache-2.0
#pragma once

// The nets on which plans are measured: four that people train, at usual sizes. Each trains on one batch that is made
// once, so that a step is only forward, backward and update.

#include "nets/training.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench_nets {

using nets::Tensor;
using nets::Training;
namespace nn = torch::nn;

// An absent size means the net's default.
struct Sizes {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> side;    // side of square pictures, in pixels
  std::optional<std::int64_t> length;  // words in a text
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> width;
};

struct Subject {
  std::shared_ptr<nn::Module> model;
  std::unique_ptr<Training> training;  // trains `model`
};

struct Net {
  std::function<Subject(const Sizes&)> make;
  std::vector<std::string> knobs;  // which sizes may be set: "batch", "side", "length", "layers", "width"
};

// Trains `model` by SGD with momentum 0.9 and a learning rate of 0.01; `loss` computes the loss of the one batch.
Subject with_momentum(std::shared_ptr<nn::Module> model, double decay, std::function<Tensor()> loss);

Net resnet50();
Net densenet121();
Net unet();
Net gpt();

}  // namespace bench_nets
