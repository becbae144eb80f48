// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_categories.h"

#include "trace/take_training.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/lifetimes.h"

#include <gtest/gtest.h>

namespace ullage::trace {
namespace {

using namespace test;

TEST(TakeCategories, TellsWhatEachStorageOfATrainingWasFor) {
  Training program;
  for (int i = 0; i < 3; ++i) program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.of(program.weight), Category::Parameters);
  EXPECT_EQ(take.of(program.bias), Category::Parameters);
  EXPECT_EQ(take.of(program.running_mean), Category::Buffers);  // written in forward, and saved
  EXPECT_EQ(take.of(program.fixed_noise), Category::Buffers);
  EXPECT_EQ(take.of(*program.gradient), Category::Gradients);
  EXPECT_EQ(take.of(*program.exp_avg), Category::OptimizerState);
  EXPECT_EQ(take.of(*program.bias_exp_avg), Category::OptimizerState);
  EXPECT_EQ(take.of(*program.noise), Category::Inputs);
  EXPECT_EQ(take.of(*program.labels), Category::Inputs);
  EXPECT_EQ(take.of(program.conv), Category::Activations);
  EXPECT_EQ(take.of(program.mask), Category::Activations);
  EXPECT_EQ(take.of(program.dropped), Category::Activations);
  EXPECT_EQ(take.of(program.norm), Category::Temporaries);  // not needed after the next op
  EXPECT_EQ(take.of(program.scratch), Category::Workspace);
  EXPECT_EQ(take.of(program.grad_out), Category::Temporaries);
  EXPECT_EQ(take.of(program.root), Category::Temporaries);
  EXPECT_EQ(take.of(*program.loss), Category::Temporaries);
}

// The first batch is made before the first forward pass, like the model, but it is no parameter.
TEST(TakeCategories, TakesTheFirstBatchForAnInput) {
  Training program;
  program.forward();
  const StorageId first = *program.noise;
  program.backward();
  program.step();
  program.train();
  program.train();
  EXPECT_EQ(program.understood().of(first), Category::Inputs);
}

TEST(TakeCategories, TakesDecayedGradientsForTemporaries) {
  Training program({.decay = 0.1, .optimizer = Training::Options::Sgd});
  for (int i = 0; i < 3; ++i) program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.of(program.decayed), Category::Temporaries);
  EXPECT_EQ(take.name(program.decayed), "aten::add");
}

// In the first step, momentum is made from a gradient, and no op writes it in place.
TEST(TakeCategories, KnowsMomentumAlsoOfASingleStep) {
  for (const int steps : {1, 2, 3}) {
    Training program({.optimizer = Training::Options::Momentum});
    for (int i = 0; i < steps; ++i) program.train();
    EXPECT_EQ(program.understood().of(*program.exp_avg), Category::OptimizerState) << steps;
  }
}

TEST(TakeCategories, KnowsGradientsThatAreFilledWithZeros) {
  Training program({.set_to_none = false});
  for (int i = 0; i < 3; ++i) program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.of(*program.gradient), Category::Gradients);
  EXPECT_EQ(take.of(program.added), Category::Temporaries);  // added to the existing gradient
}

TEST(TakeCategories, TakesAveragesOfTheWeightsForBuffers) {
  for (const bool leaf : {false, true}) {
    Training program;
    const StorageId average = program.b.op1({.name = "aten::clone", .reads = {program.weight}, .makes = {4000_B}});
    if (leaf) program.b.role(average, Role::Parameter);
    std::uint64_t op = 0;
    for (int i = 0; i < 3; ++i) {
      program.train();
      program.b.mode(Mode::NoGrad);
      op = program.b.ops();
      program.b.op({.name = "aten::mul_", .writes = {average}});
      const StorageId part = program.b.op1({.name = "aten::mul", .reads = {program.weight}, .makes = {4000_B}});
      program.b.op({.name = "aten::add_", .reads = {part}, .writes = {average}});
      program.b.free(part);
      const StorageId input = program.b.op1({.name = "aten::randn", .makes = {1000_B}});
      program.b.op({.name = "aten::convolution", .reads = {input, average}});  // an evaluation
      program.b.free(input);
      program.b.mode(Mode::Grad);
    }
    const Understood take = program.understood();
    EXPECT_EQ(take.of(average), Category::Buffers) << leaf;
    EXPECT_EQ(take.of(program.weight), Category::Parameters);
    EXPECT_EQ(take.phase(op), Phase::Optimizer);
    EXPECT_EQ(take.phase(op + 1), Phase::Optimizer);
    EXPECT_EQ(take.phase(op + 2), Phase::Optimizer);
  }
}

TEST(TakeCategories, TakesALeafThatIsNeverUpdatedForAnInput) {
  Training program;
  StorageId between, penalty;
  for (int i = 0; i < 3; ++i) {
    program.zero_grad();
    program.forward();
    between = program.b.op1({.name = "aten::lerp", .reads = {*program.noise, program.dropped}, .makes = {1000_B}});
    program.b.role(between, Role::Parameter);
    penalty = program.b.op1({.name = "aten::convolution",
                             .reads = {between, program.weight},
                             .makes = {2000_B},
                             .saves = {{between, SavedKind::Parameter}}});
    program.b.free(penalty);
    program.backward();
    program.b.free(between);
    program.step();
  }
  const Understood take = program.understood();
  EXPECT_EQ(take.of(between), Category::Inputs);
  EXPECT_EQ(take.of(penalty), Category::Temporaries);
  EXPECT_EQ(take.name(between), "aten::lerp after net.conv");
  EXPECT_EQ(take.name(penalty), "aten::convolution parameter 1 [10, 100]");  // not named by its other leaf
}

TEST(TakeCategories, TakesFrozenParametersForParameters) {
  Training program;
  const StorageId frozen = program.b.op1({.name = "aten::empty", .makes = {4000_B}});
  program.b.role(frozen, Role::Parameter);
  for (int i = 0; i < 3; ++i) {
    program.zero_grad();
    program.forward();
    program.b.op({.name = "aten::mul", .reads = {program.dropped, frozen}});
    program.backward();
    program.step();
  }
  EXPECT_EQ(program.understood().of(frozen), Category::Parameters);
}

TEST(TakeCategories, TakesWhatClipsGradientsForTemporariesOfTheOptimizer) {
  Training program;
  StorageId norm;
  std::optional<StorageId> total;
  std::uint64_t op = 0;
  for (int i = 0; i < 3; ++i) {
    program.zero_grad();
    program.forward();
    program.backward();
    program.b.mode(Mode::NoGrad);
    op = program.b.ops();
    norm = program.b.op1({.name = "aten::linalg_vector_norm", .reads = {*program.gradient}, .makes = {4_B}});
    if (total) program.b.free(*total);
    total = program.b.op1({.name = "aten::stack", .reads = {norm}, .makes = {4_B}});
    program.b.op({.name = "aten::mul_", .reads = {*total}, .writes = {*program.gradient}});
    program.b.free(norm);
    program.step();
  }
  const Understood take = program.understood();
  for (std::uint64_t i = op; i < op + 3; ++i) EXPECT_EQ(take.phase(i), Phase::Optimizer);
  EXPECT_EQ(take.of(norm), Category::Temporaries);
  EXPECT_EQ(take.of(*total), Category::Temporaries);  // the program holds it until the next step
}

TEST(TakeCategories, KnowsWhatWasThereBeforeTheTake) {
  TakeBuilder b;
  const StorageId weight = b.from_before(4000_B), state = b.from_before(4000_B), mean = b.from_before(40_B);
  const StorageId gradient = b.from_before(4000_B), old = b.from_before(8000_B);
  const StorageId nobody = b.from_before(8000_B);  // has the size of a gradient
  b.role(weight, Role::Parameter, "net.conv.weight");
  b.role(gradient, Role::Gradient);
  b.role(old, Role::Gradient);
  StorageId data{}, unsaved{};
  for (int i = 0; i < 3; ++i) {
    b.mode(Mode::Grad);
    data = b.allocate(100_B);  // outside any op
    unsaved = b.allocate(10_B);
    const StorageId out = b.op1({.name = "aten::convolution",
                                 .reads = {data, weight},
                                 .writes = {mean},
                                 .makes = {100_B},
                                 .saves = {{data, SavedKind::Constant}}});
    b.mode(Mode::Backward);
    b.op({.name = "aten::convolution_backward", .reads = {out, data}, .writes = {gradient}});
    b.free(out);
    b.mode(Mode::NoGrad);
    b.op({.name = "aten::lerp_", .reads = {gradient}, .writes = {state}});
    b.op({.name = "aten::addcdiv_", .reads = {state}, .writes = {weight}});
    b.free(data);
    b.free(unsaved);
  }
  const Understood take(b.take());
  EXPECT_EQ(take.of(weight), Category::Parameters);
  EXPECT_EQ(take.of(gradient), Category::Gradients);
  EXPECT_EQ(take.of(state), Category::OptimizerState);
  EXPECT_EQ(take.of(mean), Category::Buffers);
  EXPECT_EQ(take.of(nobody), Category::Unattributed);
  EXPECT_EQ(owner_name(take.take.trace.storages[nobody.value], take.meaning.meanings), "from before the history");
  EXPECT_EQ(take.of(data), Category::Inputs);
  EXPECT_EQ(take.of(unsaved), Category::Inputs);
  EXPECT_EQ(take.name(data), "outside any op");
  EXPECT_EQ(take.meaning.phases[take.take.trace.storages[data.value].born.value], Phase::Forward);
}

TEST(TakeCategories, KnowsStateThatIsNotOfTheSizeOfAParameter) {
  Training program({.optimizer = Training::Options::Sgd});
  std::optional<StorageId> count;
  StorageId direction{};
  std::vector<StorageId> directions;
  for (int i = 0; i < 3; ++i) {
    program.train();
    program.b.mode(Mode::NoGrad);
    if (i > 0) program.b.op({.name = "aten::dot", .reads = {*program.gradient, direction}});
    direction = program.b.op1({.name = "aten::neg", .reads = {*program.gradient}, .makes = {4400_B}});
    directions.push_back(direction);
    if (i == 2) count = program.b.op1({.name = "aten::zeros", .makes = {8_B}});
    if (i == 2) program.b.op({.name = "aten::add_", .writes = {*count}});
    program.b.op({.name = "aten::add_", .reads = {direction}, .writes = {program.weight}});
    program.b.mode(Mode::Grad);
  }
  const Understood take = program.understood();
  EXPECT_EQ(take.of(directions[0]), Category::OptimizerState);  // kept, and read by the next call
  EXPECT_EQ(take.of(directions[1]), Category::OptimizerState);
  EXPECT_EQ(take.of(*count), Category::OptimizerState);  // written by the call that made it
}

TEST(TakeCategories, KnowsWhatIsFilledWithActivations) {
  Training program;
  StorageId all{};
  for (int i = 0; i < 3; ++i) {
    program.zero_grad();
    program.forward();
    all = program.b.op1({.name = "aten::empty", .makes = {4000_B}});
    program.b.op({.name = "aten::copy_", .reads = {program.conv}, .writes = {all}});
    program.backward();
    program.b.free(all);
    program.step();
  }
  EXPECT_EQ(program.understood().of(all), Category::Temporaries);
}

TEST(TakeCategories, KnowsParametersThatAreReplacedInEachStep) {
  Training program;
  StorageId extra = program.b.op1({.name = "aten::randn", .makes = {300_B}});
  for (int i = 0; i < 4; ++i) {
    program.zero_grad();
    program.forward();
    program.b.role(extra, Role::Parameter);
    program.b.op({.name = "aten::mul", .reads = {program.dropped, extra}});
    program.backward();
    program.step();
    program.b.mode(Mode::NoGrad);
    const StorageId next = program.b.op1({.name = "aten::sub", .reads = {extra, *program.gradient}, .makes = {300_B}});
    if (i < 3) {
      program.b.free(extra);
      extra = next;
    }
    program.b.mode(Mode::Grad);
  }
  EXPECT_EQ(program.understood().of(extra), Category::Parameters);
}

// No tensor requires grad, so the only sign of the weights is that they stay.
TEST(TakeCategories, OfFrozenModelsKnowsWhatStays) {
  TakeBuilder b;
  const StorageId weight = b.op1({.name = "aten::empty", .makes = {4000_B}});
  b.op({.name = "aten::copy_", .writes = {weight}});
  for (int i = 0; i < 30; ++i) {
    const StorageId in = b.op1({.name = "aten::randn", .makes = {1000_B}});
    const StorageId out = b.op1({.name = "aten::convolution", .reads = {in, weight}, .makes = {2000_B}});
    for (const char* name : {"aten::relu_", "aten::tanh_", "aten::abs_", "aten::neg_", "aten::exp_", "aten::log_"}) {
      b.op({.name = name, .writes = {out}});
    }
    b.free(in);
    b.free(out);
  }
  const Understood take(b.take());
  EXPECT_GT(take.meaning.steps.whole(), 20u);
  EXPECT_EQ(take.of(weight), Category::Buffers);
}

// A storage is made and freed inside a composite op, by an inner op.
TEST(TakeCategories, TakesWhatLivesWithinOneOpForWorkspace) {
  Training program;
  StorageId within{}, out{};
  for (int i = 0; i < 2; ++i) {
    program.zero_grad();
    program.forward();
    const OpId outer = program.b.open({.name = "aten::attention", .reads = {program.dropped}});
    within = program.b.op1({.name = "aten::softmax", .reads = {program.dropped}, .makes = {100_B}});
    out = program.b.op1({.name = "aten::mm", .reads = {within}, .makes = {100_B}});
    program.b.free(within);
    program.b.close(outer);
    program.backward();
    program.b.free(out);
    program.step();
  }
  const Understood take = program.understood();
  EXPECT_EQ(take.of(within), Category::Workspace);
  EXPECT_EQ(take.of(out), Category::Temporaries);
}

TEST(TakeCategories, OfAnEvaluationAloneKnowsParametersAndInputs) {
  Training program({.told = false});
  program.b.mode(Mode::NoGrad);
  StorageId in{}, out{};
  for (int i = 0; i < 30; ++i) {
    in = program.b.op1({.name = "aten::randn", .makes = {1000_B}});
    out = program.b.op1({.name = "aten::convolution", .reads = {in, program.weight}, .makes = {2000_B}});
    const StorageId next = program.b.op1({.name = "aten::relu", .reads = {out}, .makes = {2000_B}});
    program.b.op({.name = "aten::add_", .reads = {program.bias}, .writes = {next}});
    program.b.op({.name = "aten::tanh_", .writes = {next}});
    program.b.op({.name = "aten::sum", .reads = {next}});
    program.b.op({.name = "aten::item", .reads = {next}});
    program.b.free(in), program.b.free(out), program.b.free(next);
  }
  const Understood take = program.understood();
  EXPECT_EQ(take.of(program.weight), Category::Parameters);
  EXPECT_EQ(take.of(in), Category::Inputs);
  EXPECT_EQ(take.of(out), Category::Temporaries);
  EXPECT_EQ(take.meaning.steps.from, Steps::From::Recorded);
  EXPECT_GT(take.meaning.steps.whole(), 20u);
}

}  // namespace
}  // namespace ullage::trace
