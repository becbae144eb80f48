// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/input_work.h"

#include "ullage/predict/predict.h"
#include "ullage/predict/sequence.h"
#include "ullage/sim/replay.h"
#include "ullage/trace/meaning/levels.h"

#include "training.h"

#include <gtest/gtest.h>

#include <functional>

namespace ullage::predict {
namespace {

// A program of four steps. `load` prepares the input of a step and returns it.
std::function<void(Program&)> training(const std::function<StorageId(Program&, int)>& load) {
  return [load](Program& p) {
    const std::int64_t batch = p.knob("batch");
    const StorageId weight = p.op("make_weight", kModel);
    p.role(weight, trace::Role::Parameter, "net.weight");
    for (int step = 0; step < 4; ++step) {
      const StorageId input = load(p, step);
      const OpId conv = p.begin("conv", {reads(input, {batch, 10000}), reads(weight, {262144})});
      const StorageId out = p.make(100000 * std::uint64_t(batch));
      p.end(conv, {gives(out, {batch, 25000})});
      p.save(out);
      const OpId back = p.begin("conv_backward", {reads(out, {batch, 25000})});
      const StorageId gradient = p.make(kModel);
      p.end(back, {gives(gradient, {262144})});
      p.unsave(out);
      p.free(out);
      p.free(input);
      p.free(gradient);
      p.step_end();
    }
  };
}

// Stacks as many samples as the batch has.
StorageId stack(Program& p, int /*step*/) {
  const auto batch = std::uint64_t(p.knob("batch"));
  std::vector<StorageId> samples;
  std::vector<trace::TensorUse> uses;
  for (std::uint64_t i = 0; i < batch; ++i) {
    p.free(p.make(8));  // torch.tensor(label), outside of any op
    samples.push_back(p.op("aten::rand", 40000));
    uses.push_back(reads(samples.back(), {10000}));
  }
  const OpId op = p.begin("aten::stack", uses);
  const StorageId input = p.make(40000 * batch);
  p.end(op, {gives(input, {std::int64_t(batch), 10000})});
  for (const StorageId sample : samples) p.free(sample);
  return input;
}

TEST(InputWork, CollationOfNSamplesIsABoundThatHoldsToTheByte) {
  const auto program = training(stack);
  const Prediction found = predicted(predict(takes_by_batch(program), at_batch(32)));
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_NE(found.why.find("only prepare inputs"), std::string::npos) << found.why;
  EXPECT_EQ(found.pool_peak, measured_peak(program, 32)) << "the samples are freed before the activations are there";
}

TEST(InputWork, SamplesMakeThePeakWhereTheyDo) {
  const auto program = training([](Program& p, int step) {
    const OpId op = p.begin("aten::rand");
    const StorageId all = p.make(900000 * std::uint64_t(p.knob("batch")));
    p.end(op, {gives(all, {1})});
    const StorageId input = stack(p, step);
    p.free(all);
    return input;
  });
  const Prediction found = predicted(predict(takes_by_batch(program), at_batch(32)));
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_EQ(found.pool_peak, measured_peak(program, 32));
}

TEST(InputWork, ASamplersDrawsCountEverywhereInTheSteps) {
  // Draws 12 indices of 8 KiB at once: no batch draws at the same steps as another.
  const auto program = training([drawn = 0](Program& p, int step) mutable {
    if (step == 0) drawn = 0;
    for (drawn -= int(p.knob("batch")); drawn < 0; drawn += 12) {
      p.free(p.op("aten::randint", 98304));
      p.op("aten::tally", 8);
    }
    return p.op("aten::empty", 40000 * std::uint64_t(p.knob("batch")));
  });
  const std::vector<std::int64_t> batches{4, 6, 8};
  const Prediction found = predicted(predict(takes_by_batch(program, batches), at_batch(24)));
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_GE(found.pool_peak, measured_peak(program, 24));
  EXPECT_LE(found.pool_peak, measured_peak(program, 24) + 98304_B * 6) << "of six draws for a batch at most";
}

TEST(InputWork, AnInputWithoutALawIsTakenAtItsMost) {
  // A corpus of 100,003 numbers in rows: what does not fill a row is cut off.
  const auto program = [](Program& p) {
    const StorageId corpus =
        p.op("aten::view", 100003 / std::uint64_t(p.knob("batch")) * std::uint64_t(p.knob("batch")) * 8);
    training([corpus](Program& q, int) {
      return q.op("aten::narrow", 40000 * std::uint64_t(q.knob("batch")), {reads(corpus, {100003 / q.knob("batch")})});
    })(p);
    const OpId last = p.begin("conv", {reads(corpus, {1}), reads(StorageId{1}, {262144})});
    p.end(last);
  };
  const Prediction found = predicted(predict(takes_by_batch(program, {8, 12, 16}), at_batch(40)));
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_GE(found.pool_peak, measured_peak(program, 40));
  EXPECT_LE(found.pool_peak, measured_peak(program, 40) + 2000_B);
}

TEST(InputWork, AnOpThatFollowsFromAParameterIsStillADifference) {
  const auto program = training([](Program& p, int step) {
    if (p.knob("batch") == 3 && step == 2) p.op("aten::norm", 4, {reads(StorageId{0}, {262144})});
    return stack(p, step);
  });
  const NeedsTakes found = needs_takes(predict(takes_by_batch(program), at_batch(32)));
  EXPECT_NE(found.why.find("aten::norm"), std::string::npos) << found.why;
}

TEST(InputWork, AnOpWithAThresholdStays) {
  const auto program = training([](Program& p, int step) {
    const std::int64_t batch = p.knob("batch");
    const OpId sort = p.begin("aten::sort", {reads(StorageId{1}, {batch, 10000})});
    p.end(sort);
    return stack(p, step);
  });
  const NeedsTakes found = needs_takes(predict(takes_by_batch(program), at_batch(32)));
  EXPECT_NE(found.why.find("32,768"), std::string::npos) << found.why;
}

TEST(InputWork, WithoutAParameterNothingTellsInputsApart) {
  const auto program = [](Program& p) { p.free(stack(p, 0)); };
  const trace::TraceFile file = takes_by_batch(program);
  const Result<Sequence> arranged = arrange(file);
  ASSERT_TRUE(arranged.ok());
  EXPECT_FALSE(without_input_work(file, arranged->grid, arranged->order));
}

TEST(AtOrAbove, IsALawfulBound) {
  const Grid grid{{{"batch", {8, 12, 16}}}};
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(at_or_above(grid, Counts{80, 120, 160}), (Counts{80, 120, 160})) << "it follows a law already";
  EXPECT_EQ(at_or_above(grid, Counts{100, 96, 100}), (Counts{100, 104, 108}));
  EXPECT_EQ(at_or_above(grid, Counts{0, 400, 0}), (Counts{1, 401, 801})) << "each is above zero";
  const Grid plane{{{"width", {2, 3, 4}}, {"height", {2, 3, 4}}}};
  const Counts counts{4, 6, 8, 7, 9, 12, 8, 12, 16};
  const Counts above = at_or_above(plane, counts);
  EXPECT_TRUE(evaluate(plane, above, Counts{9, 9}));
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_GE(above[i], counts[i]);
}

}  // namespace
}  // namespace ullage::predict
