// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_names.h"

#include "trace/take_training.h"

#include <gtest/gtest.h>

namespace ullage::trace {
namespace {

using namespace test;

TEST(TakeNames, NamesParametersWithoutNamesByTheirLayers) {
  Training program({.named = false});
  for (int i = 0; i < 3; ++i) program.train();
  EXPECT_EQ(program.understood().name(program.weight), "net");
}

TEST(TakeNames, KnowsNamesThatWereToldLate) {
  Training program({.told = false});
  for (int i = 0; i < 3; ++i) program.train();
  program.b.role(program.weight, Role::Parameter, "net.conv.weight");
  EXPECT_EQ(program.understood().name(program.weight), "net");
}

TEST(TakeNames, NamesStateByWhatItsCallUpdates) {
  for (const bool both : {false, true}) {
    Training program;
    const StorageId other = program.b.op1({.name = "aten::empty", .makes = {4000_B}});
    program.b.role(other, Role::Parameter, "head.weight");
    for (int i = 0; i < 3; ++i) {
      program.zero_grad();
      program.forward();
      program.b.op({.name = "aten::mul", .reads = {program.dropped, other}});
      program.backward();
      program.step();
      program.b.mode(both ? Mode::NoGrad : Mode::Backward);
      program.b.op({.name = "aten::mm", .reads = {*program.gradient}});
      program.b.mode(Mode::NoGrad);
      program.b.op({.name = "aten::add_", .reads = {*program.gradient}, .writes = {other}});
    }
    EXPECT_EQ(program.understood().name(*program.exp_avg), both ? "optimizer state" : "net");
  }
}

TEST(TakeNames, NamesPlaces) {
  Training program;
  for (int i = 0; i < 3; ++i) program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.name(program.weight), "net");
  EXPECT_EQ(take.name(*program.gradient), "net");
  EXPECT_EQ(take.name(*program.exp_avg), "net");
  EXPECT_EQ(take.name(program.running_mean), "buffers");
  EXPECT_EQ(take.name(program.conv), "aten::convolution net.conv");
  EXPECT_EQ(take.name(program.dropped), "aten::mul after net.conv");
  EXPECT_EQ(take.name(program.scratch), "aten::convolution net.conv");
  EXPECT_EQ(take.name(program.grad_out), "aten::binary_cross_entropy_backward BinaryCrossEntropyBackward0");
  EXPECT_EQ(take.name(program.root), "aten::sqrt");
  EXPECT_EQ(take.name(*program.noise), "aten::randn");  // without "after ...", because a step began
}

TEST(TakeNames, NamesPlacesByParametersWhereNoNamesWereTold) {
  Training program({.told = false});
  for (int i = 0; i < 3; ++i) program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.name(program.conv), "aten::convolution parameter 1 [10, 100]");
  EXPECT_EQ(take.name(program.dropped), "aten::mul after parameter 1 [10, 100]");
  EXPECT_EQ(take.name(program.weight), "parameters");
  EXPECT_EQ(take.name(*program.gradient), "gradients");
  EXPECT_EQ(take.name(*program.exp_avg), "optimizer state");
}

}  // namespace
}  // namespace ullage::trace
