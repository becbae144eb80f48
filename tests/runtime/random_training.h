// SPDX-License-Identifier: Apache-2.0
#pragma once

// A training step of random ops, the same for one seed: ops without autograd, a forward pass, backward, an in-place
// update. It has in-place ops on tensors and views, views of all kinds, and ops with several outputs. It draws from the
// default generator and from its own, writes by pointer, and uses autocast and a custom autograd function. Some values
// live on into the next step.

#include "random_values.h"
#include "training.h"

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace random_program {

struct Sizes {
  std::int64_t batch, channels, side;
};

class RandomTraining final : public nets::Training {
 public:
  // `ops`: about how many ops are chosen for the forward pass and the part before it. Backward adds about as many.
  RandomTraining(std::uint64_t seed, std::uint64_t ops, torch::Device device);

  double step() override;

 private:
  // In random_ops.cpp. Each runs one kind of op on values_.
  void any_op(bool watched);
  void pointwise();
  void pointwise_in_place();
  void of_two();
  void part_in_place();
  void view();
  void several_outputs();
  void normalize();
  void window();
  void drop_out();
  void draw(bool watched);
  void product();
  void move();
  void reduce();
  void write_by_pointer();
  void custom();

  Tensor blank(Kind kind) const { return blank(kind, device_); }
  Tensor blank(Kind kind, torch::Device device) const;
  void make_parameters();
  void begin_values();
  Tensor loss();
  void update();
  void carry_over();

  const std::uint64_t seed_, ops_;
  const torch::Device device_;
  Sizes sizes_;
  std::mt19937_64 random_;
  std::unique_ptr<Values> values_;
  std::shared_ptr<torch::nn::Module> model_;
  Tensor weight3_, weight1_, each_channel_, linear_, bias_, scale_, shift_, mean_, variance_;
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<Tensor> momenta_;  // of the update by hand, if there is no optimizer
  std::vector<Tensor> state_;    // written in place once a step, read in the next
  std::vector<Value> late_;      // values of the step before, released in the middle of this one
  at::Generator generator_;
  double said_ = 0;
};

}  // namespace random_program
