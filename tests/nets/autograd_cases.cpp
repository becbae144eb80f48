// SPDX-License-Identifier: Apache-2.0
// Tests the limits of autograd around saved tensors: a saved tensor that is changed in place (an error), several
// backward passes through one graph, and two graphs run by two threads at once.

#include "training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>

#include <array>
#include <exception>
#include <thread>

namespace nets {
namespace {

using torch::optim::Adam;

nn::Sequential perceptron(std::int64_t width) {
  return nn::Sequential(nn::Linear(width, 2 * width), nn::Tanh(), nn::Linear(2 * width, width), nn::Sigmoid(),
                        nn::Linear(width, width));
}

std::shared_ptr<Adam> adam_of(nn::Sequential& net) {
  return std::make_shared<Adam>(net->parameters(), torch::optim::AdamOptions(1e-3));
}

// The base of the cases below: one perceptron that learns to reproduce its input.
class PerceptronTraining : public Training {
 protected:
  explicit PerceptronTraining(Scale scale)
      : width_(at_scale<std::int64_t>(scale, 288, 704, 1024)), net_(perceptron(width_)), adam_(adam_of(net_)) {
    add_model("model", net_.ptr());
    add_optimizer("optimizer", net_.ptr(), adam_);
  }

  Tensor inputs() const { return torch::randn({2 * width_, width_}); }

  const std::int64_t width_;
  nn::Sequential net_;
  const std::shared_ptr<Adam> adam_;
};

class InPlace final : public PerceptronTraining {
 public:
  explicit InPlace(Scale scale) : PerceptronTraining(scale) {}

  double step() override {
    adam_->zero_grad();
    provoke();
    const Tensor x = inputs();
    const Tensor loss = torch::mse_loss(net_->forward(x), x);
    loss.backward();
    adam_->step();
    return loss.item<float>();
  }

 private:
  // tanh saves its result for backward. If the result is changed in place, backward must fail instead of using the
  // new value.
  void provoke() {
    Tensor saved = torch::tanh(net_->forward(inputs()));
    const Tensor later = saved * 2;
    saved.add_(1);
    try {
      later.sum().backward();
      said_.push_back("no error: a tensor saved for backward was changed in place");
    } catch (const c10::Error& error) {
      said_.push_back(error.what_without_backtrace());
    }
  }
};

class Retain final : public PerceptronTraining {
 public:
  explicit Retain(Scale scale) : PerceptronTraining(scale) {
    add_tensor("slope", [this] { return slope_; });
  }

  double step() override {
    adam_->zero_grad();
    const Tensor x = inputs().requires_grad_();
    const Tensor told = net_->forward(x);
    const Tensor loss = torch::mse_loss(told, x);
    loss.backward({}, /*retain_graph=*/true);
    slope_ = torch::autograd::grad({told.square().mean()}, {x}, /*grad_outputs=*/{}, /*retain_graph=*/true)[0];
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    adam_->step();
    return loss.item<float>();
  }

 private:
  Tensor slope_;  // of the last step
};

// Two nets trained at the same time, each by its own thread. Each thread has its own generator, so the outcome does not
// depend on which thread is faster.
class Threads final : public Training {
 public:
  explicit Threads(Scale scale)
      : width_(at_scale<std::int64_t>(scale, 192, 512, 768)),
        learners_{Learner(perceptron(width_), 1), Learner(perceptron(width_), 2)} {
    for (std::size_t i = 0; i < learners_.size(); ++i) {
      const std::string name = "thread" + std::to_string(i);
      add_model(name, learners_[i].net.ptr());
      add_optimizer(name + "/optimizer", learners_[i].net.ptr(), learners_[i].adam);
    }
  }

  double step() override {
    std::vector<std::thread> threads;
    for (Learner& learner : learners_) threads.emplace_back([this, &learner] { learn(learner); });
    for (std::thread& thread : threads) thread.join();
    for (const Learner& learner : learners_) {
      if (learner.failure) std::rethrow_exception(learner.failure);
    }
    return learners_[0].loss + learners_[1].loss;
  }

 private:
  static constexpr int kRounds = 3;  // per step; more than one, so that the threads also overlap in mid-work

  struct Learner {
    Learner(nn::Sequential made, std::uint64_t seed)
        : net(std::move(made)), adam(adam_of(net)), generator(at::detail::createCPUGenerator(seed)) {}
    nn::Sequential net;
    std::shared_ptr<Adam> adam;
    at::Generator generator;
    double loss = 0;
    std::exception_ptr failure;
  };

  void learn(Learner& learner) const {
    try {
      for (int round = 0; round < kRounds; ++round) {
        learner.adam->zero_grad();
        const Tensor x = torch::randn({2 * width_, width_}, learner.generator);
        const Tensor loss = torch::mse_loss(learner.net->forward(x), x);
        loss.backward();
        learner.adam->step();
        learner.loss = loss.item<float>();
      }
    } catch (...) {
      learner.failure = std::current_exception();
    }
  }

  const std::int64_t width_;
  std::array<Learner, 2> learners_;
};

}  // namespace

void add_autograd_cases(Nets& nets) {
  nets["inplace"] = {[](const Sizes& sizes) { return std::make_unique<InPlace>(sizes.scale); }};
  nets["retain"] = {[](const Sizes& sizes) { return std::make_unique<Retain>(sizes.scale); }};
  nets["threads"] = {[](const Sizes& sizes) { return std::make_unique<Threads>(sizes.scale); }};
}

}  // namespace nets
