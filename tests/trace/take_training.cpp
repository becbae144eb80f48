// SPDX-License-Identifier: Apache-2.0
#include "take_training.h"

#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/lifetimes.h"

#include <gtest/gtest.h>

#include <utility>

namespace ullage::trace::test {

Understood::Understood(Take of) : take(std::move(of)), meaning(understand(take)) {
  const Trace& trace = take.trace;
  EXPECT_EQ(meaning.op_phases.size(), trace.ops.size());
  EXPECT_EQ(meaning.phases.size(), trace.events.size());
  EXPECT_EQ(meaning.categories.size(), trace.storages.size());
  EXPECT_EQ(meaning.meanings.size(), meaning.stacks.stack_count());
  // The functions that work from the stacks alone must give the same categories.
  EXPECT_EQ(categories(trace, meaning.meanings), meaning.categories);
  const Levels level = levels(trace);
  for (const At when : {At::Peak, At::End}) {
    const std::optional<Moment> moment = find(trace, level, when);
    Bytes sum;
    for (const Owner& one : owners_at(trace, *moment, meaning.meanings, meaning.categories)) {
      EXPECT_FALSE(one.name.empty());
      sum += one.bytes;
    }
    EXPECT_EQ(sum, moment->live);
  }
}

void Training::load() {
  b.mode(Mode::Grad);
  weight = b.op1({.name = "aten::empty", .makes = {4000_B}});
  b.sizes(weight, {10, 100});
  bias = b.op1({.name = "aten::empty", .makes = {400_B}});
  running_mean = b.op1({.name = "aten::zeros", .makes = {40_B}});
  fixed_noise = b.op1({.name = "aten::randn", .makes = {800_B}});
  b.mode(Mode::NoGrad);
  b.op({.name = "aten::uniform_", .writes = {weight}});
  b.role(weight, Role::Parameter, with.named ? "net.conv.weight" : "");
  b.op({.name = "aten::uniform_", .writes = {bias}});
  b.role(bias, Role::Parameter, with.named ? "net.conv.bias" : "");
  b.mode(Mode::Grad);
}

void Training::forward() {
  b.mode(Mode::Grad);
  if (noise) b.free(*noise);
  noise = b.op1({.name = "aten::randn", .makes = {1000_B}});
  if (labels) b.free(*labels);
  labels = b.op1({.name = "aten::full", .makes = {16_B}});
  conv = b.op1({.name = "aten::convolution",
                .reads = {*noise, weight, bias},
                .makes = {2000_B},
                .saves = {{*noise, SavedKind::Constant}, {weight, SavedKind::Parameter}},
                .scratch = {6000_B},
                .layer = layer()});
  scratch = StorageId{conv.value - 1};
  norm = b.op1({.name = "aten::native_batch_norm",
                .reads = {conv},
                .writes = {running_mean},
                .makes = {2000_B},
                .saves = {{conv, SavedKind::Activation}, {running_mean, SavedKind::Constant}}});
  mask = b.op1({.name = "aten::empty_like", .reads = {norm}, .makes = {500_B}});
  b.op({.name = "aten::bernoulli_", .writes = {mask}});
  dropped =
      b.op1({.name = "aten::mul", .reads = {norm, mask}, .makes = {2000_B}, .saves = {{mask, SavedKind::Constant}}});
  b.free(norm);
  if (loss) b.free(*loss);
  loss = b.op1({.name = "aten::binary_cross_entropy",
                .reads = {dropped, *labels},
                .makes = {4_B},
                .saves = {{dropped, SavedKind::Activation}, {*labels, SavedKind::Constant}}});
}

void Training::backward() {
  b.mode(Mode::Grad);
  const StorageId seed = b.op1({.name = "aten::ones_like", .reads = {*loss}, .makes = {4_B}});
  b.mode(Mode::Backward);
  grad_out = b.op1({.name = "aten::binary_cross_entropy_backward",
                    .reads = {seed, dropped, *labels},
                    .makes = {2000_B},
                    .node = "BinaryCrossEntropyBackward0"});
  b.free(dropped);
  b.free(mask);
  const auto made = b.op({.name = "aten::convolution_backward",
                          .reads = {grad_out, *noise, weight},
                          .makes = {4000_B, 400_B},
                          .scratch = {4000_B},
                          .layer = layer(),
                          .node = "ConvolutionBackward0"});
  b.free(grad_out);
  b.free(conv);
  if (gradient) {
    b.op({.name = "aten::add_", .reads = {made[0]}, .writes = {*gradient}, .node = "AccumulateGrad"});
    b.op({.name = "aten::add_", .reads = {made[1]}, .writes = {*bias_gradient}, .node = "AccumulateGrad"});
    b.free(made[0]);
    b.free(made[1]);
    added = made[0];
  } else {
    gradient = made[0];
    bias_gradient = made[1];
  }
  b.mode(Mode::Grad);
  b.free(seed);
  b.role(*gradient, Role::Gradient);
  b.role(*bias_gradient, Role::Gradient);
}

void Training::step() {
  b.mode(Mode::NoGrad);
  first_of_step = b.ops();
  if (with.optimizer == Options::Adam && !exp_avg) {
    exp_avg = b.op1({.name = "aten::zeros_like", .reads = {weight}, .makes = {4000_B}});
    bias_exp_avg = b.op1({.name = "aten::zeros_like", .reads = {bias}, .makes = {400_B}});
  }
  update(weight, *gradient, exp_avg, 4000_B);
  update(bias, *bias_gradient, bias_exp_avg, 400_B);
  b.mode(Mode::Grad);
}

void Training::zero_grad() {
  if (with.set_to_none) {
    if (gradient) b.free(*gradient), b.free(*bias_gradient);
    gradient.reset();
  } else if (gradient) {
    b.op({.name = "aten::zero_", .writes = {*gradient}});
    b.op({.name = "aten::zero_", .writes = {*bias_gradient}});
  }
}

void Training::train() {
  zero_grad();
  forward();
  backward();
  step();
}

void Training::update(StorageId parameter, StorageId grad, std::optional<StorageId>& state, Bytes bytes) {
  StorageId used = grad;
  if (with.decay > 0) {
    decayed = b.op1({.name = "aten::add", .reads = {grad, parameter}, .makes = {bytes}});
    used = decayed;
  }
  if (with.optimizer == Options::Adam) {
    b.op({.name = "aten::lerp_", .reads = {used}, .writes = {*state}});
    root = b.op1({.name = "aten::sqrt", .reads = {*state}, .makes = {bytes}});
    b.op({.name = "aten::add_", .writes = {root}});
    b.op({.name = "aten::addcdiv_", .reads = {*state, root}, .writes = {parameter}});
    b.free(root);
  } else if (with.optimizer == Options::Momentum) {
    if (!state) {
      state = b.op1({.name = "aten::clone", .reads = {used}, .makes = {bytes}});
    } else {
      b.op({.name = "aten::mul_", .writes = {*state}});
    }
    b.op({.name = "aten::add_", .reads = {*state}, .writes = {parameter}});
  } else {
    b.op({.name = "aten::add_", .reads = {used}, .writes = {parameter}});
  }
  if (with.decay > 0) b.free(decayed);
}

}  // namespace ullage::trace::test
