// SPDX-License-Identifier: Apache-2.0
#pragma once

// The nets on which plans are measured: four that people train, at the sizes they train them at. Each trains on one
// batch that is made once, so that a step is forward, backward and update and nothing else.

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

// What is absent is as the net has it by itself.
struct Sizes {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> side;    // of square pictures, in pixels
  std::optional<std::int64_t> length;  // of a text, in words
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> width;
};

struct Subject {
  std::shared_ptr<nn::Module> model;
  std::unique_ptr<Training> training;  // of that model
};

struct Net {
  std::function<Subject(const Sizes&)> make;
  std::vector<std::string> knobs;  // which of its sizes may be asked for: "batch", "side", "length", "layers", "width"
};

// SGD with momentum and a loss of one batch.
Subject with_momentum(std::shared_ptr<nn::Module> model, double decay, std::function<Tensor()> loss);

Net resnet50();
Net densenet121();
Net unet();
Net gpt();

}  // namespace bench_nets
