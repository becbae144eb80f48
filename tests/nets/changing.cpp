// SPDX-License-Identifier: Apache-2.0
// A program whose steps differ. Now and then a step evaluates, or gets a short batch. Another reads the gradients of
// the step before, or uses tensors of its forward pass after backward is over. A plan must survive each of these.

#include "training.h"

#include <torch/optim/adam.h>

namespace nets {
namespace {

class Changing final : public Training {
 public:
  Changing(Scale scale, std::optional<std::int64_t> batch)
      : batch_(batch.value_or(at_scale<std::int64_t>(scale, 8, 16, 32))),
        side_(at_scale<std::int64_t>(scale, 32, 64, 96)),
        adam_(std::make_shared<torch::optim::Adam>(net_parameters(), torch::optim::AdamOptions(1e-3))) {
    add_model("first", first_.ptr());
    add_model("norm", norm_.ptr());
    add_model("second", second_.ptr());
    add_model("last", last_.ptr());
  }

  double step() override {
    const int now = steps_++;
    if (now % 5 == 4) evaluate();
    const Tensor x = torch::randn({now % 7 == 6 ? batch_ / 2 : batch_, 3, side_, side_});
    Tensor loss;
    double beside = 0;
    {
      const Tensor convolved = first_->forward(x);
      const Tensor normed = norm_->forward(convolved);
      const Tensor lit = torch::gelu(normed);
      const Tensor pooled = torch::dropout(torch::max_pool2d(second_->forward(lit), 2), 0.2, true);
      loss = (last_->forward(pooled) - torch::max_pool2d(x, 2)).pow(2).mean();
      if (now % 9 == 7) gradients_seen();  // of the step before
      adam_->zero_grad();
      loss.backward();
      if (now % 6 == 5) beside = normed.mean().item<double>() + convolved.abs().max().item<double>();
      if (now % 8 == 6) beside += static_cast<const float*>(lit.const_data_ptr())[17];  // a read without an op
    }
    adam_->step();
    return loss.item<double>() + beside;
  }

 private:
  static constexpr std::int64_t kWidth = 16;

  std::vector<Tensor> net_parameters() const {
    std::vector<Tensor> all;
    for (const auto& part : {first_->parameters(), norm_->parameters(), second_->parameters(), last_->parameters()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  void evaluate() {
    const torch::NoGradGuard no_grad;
    norm_->eval();
    const Tensor out = last_->forward(torch::max_pool2d(
        second_->forward(torch::gelu(norm_->forward(first_->forward(torch::ones({2, 3, side_, side_}))))), 2));
    norm_->train();
    said_.push_back("evaluated " + std::to_string(out.sum().item<double>()));
  }

  void gradients_seen() {
    double sum = 0;
    for (const Tensor& parameter : net_parameters()) {
      if (parameter.grad().defined()) sum += parameter.grad().norm().item<double>();
    }
    said_.push_back("gradients " + std::to_string(sum));
  }

  const std::int64_t batch_, side_;
  nn::Conv2d first_{nn::Conv2dOptions(3, kWidth, 3).padding(1)};
  nn::BatchNorm2d norm_{kWidth};
  nn::Conv2d second_{nn::Conv2dOptions(kWidth, 2 * kWidth, 3).padding(1)};
  nn::Conv2d last_{nn::Conv2dOptions(2 * kWidth, 3, 1)};
  std::shared_ptr<torch::optim::Adam> adam_;
  int steps_ = 0;
};

}  // namespace

void add_changing(Nets& nets) {
  nets["changing"] = {[](const Sizes& sizes) { return std::make_unique<Changing>(sizes.scale, sizes.batch); },
                      {"batch"}};
}

}  // namespace nets
