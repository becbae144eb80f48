// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of every net to main.cpp: it takes a training step, and its state can be digested part by part. A net
// names its parts in its constructor, and they are digested in that order. A new net derives from Training and is
// registered by one of the add_ functions below.

#include "digest.h"

#include <torch/nn.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nets {

using torch::Tensor;
namespace nn = torch::nn;

// Tiny: a few milliseconds a step, 8 to 20 MiB live at the peak. Small: 60 to 150 MiB. Full: some hundred MiB.
enum class Scale { Tiny, Small, Full };

// How large the net and its input are. An absent size is that of the scale.
struct Sizes {
  Scale scale = Scale::Small;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> side;    // of square pictures, in pixels
  std::optional<std::int64_t> length;  // of a series: words, time steps
};

template <class T>
T at_scale(Scale scale, T tiny, T small, T full) {
  return scale == Scale::Tiny ? tiny : scale == Scale::Small ? small : full;
}

class Training {
 public:
  virtual ~Training() = default;

  // Takes one training step and returns its loss.
  virtual double step() = 0;

  // Returns name and SHA-256 of each part (such as "model/gradients") and of torch's default generator.
  std::vector<std::pair<std::string, std::string>> digests() const;

  // The texts of errors that the net provoked and caught.
  const std::vector<std::string>& said() const { return said_; }

 protected:
  void add_model(const std::string& name, std::shared_ptr<nn::Module> model);
  void add_optimizer(const std::string& name, std::shared_ptr<nn::Module> model,
                     std::shared_ptr<torch::optim::Optimizer> optimizer);
  // Adds a tensor that lives across steps outside any model. `tensor` is called at each digest.
  void add_tensor(const std::string& name, std::function<Tensor()> tensor);

  std::vector<std::string> said_;

 private:
  void add_part(std::string name, std::function<void(Digest&)> digest);

  std::vector<std::pair<std::string, std::function<void(Digest&)>>> parts_;
};

// How a net is made, and which of its sizes the command line may set: "batch", "side", "length".
struct Net {
  std::function<std::unique_ptr<Training>(const Sizes&)> make;
  std::vector<std::string> knobs = {};
};
using Nets = std::map<std::string, Net>;

// A net with one model, one optimizer and a loss function that makes its own inputs.
template <class Optimizer>
class SimpleTraining final : public Training {
 public:
  // `before_update` gets the parameters between backward and the optimizer's step; it may be empty.
  template <class Options>
  SimpleTraining(std::shared_ptr<nn::Module> model, Options options, std::function<Tensor()> loss,
                 std::function<void(const std::vector<Tensor>&)> before_update = {})
      : model_(std::move(model)),
        optimizer_(std::make_shared<Optimizer>(model_->parameters(), options)),
        loss_(std::move(loss)),
        before_update_(std::move(before_update)) {
    add_model("model", model_);
    add_optimizer("optimizer", model_, optimizer_);
  }

  double step() override {
    optimizer_->zero_grad();
    const Tensor loss = loss_();
    loss.backward();
    if (before_update_) before_update_(model_->parameters());
    optimizer_->step();
    return loss.template item<float>();
  }

 private:
  const std::shared_ptr<nn::Module> model_;
  const std::shared_ptr<Optimizer> optimizer_;
  const std::function<Tensor()> loss_;
  const std::function<void(const std::vector<Tensor>&)> before_update_;
};

// Each adds the nets of one file, by name.
void add_convolutional(Nets& nets);
void add_sequential(Nets& nets);
void add_adversarial(Nets& nets);
void add_autograd_cases(Nets& nets);
void add_storage_cases(Nets& nets);
void add_changing(Nets& nets);

}  // namespace nets
