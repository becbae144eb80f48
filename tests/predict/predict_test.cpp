// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/predict.h"

#include "training.h"

#include <algorithm>
#include <optional>
#include <random>

namespace ullage::predict {
namespace {

const auto kTrain = [](Program& p) { train(p); };

// Of every prediction.
void expect_sums(const Prediction& prediction) {
  Bytes rows, owners;
  for (const Row& row : prediction.rows) rows += row.bytes;
  for (const trace::Owner& owner : prediction.owners) owners += owner.bytes;
  EXPECT_EQ(rows, prediction.process_peak);
  EXPECT_EQ(owners, prediction.pool_peak);
  EXPECT_GE(prediction.pool_resident_peak, prediction.pool_peak);
}

std::optional<Bytes> row(const Prediction& prediction, const std::string& name) {
  const auto found = std::ranges::find(prediction.rows, name, &Row::name);
  return found == prediction.rows.end() ? std::nullopt : std::optional(found->bytes);
}

TEST(Predict, GivesThePeakOfTheTargetToTheByte) {
  const trace::TraceFile file = takes_by_batch(kTrain);
  for (const std::int64_t batch : {2, 3, 4, 5, 24, 128, 4096}) {
    const Prediction found = told(predict(file, at_batch(batch)));
    expect_sums(found);
    EXPECT_EQ(found.law, Law::Exact);
    EXPECT_FALSE(found.measured);
    EXPECT_EQ(found.pool_peak.count, train_peak(batch)) << batch;
    EXPECT_EQ(found.peak_op, "conv_backward");
    EXPECT_EQ(found.peak_step, 2u);
    EXPECT_EQ(found.at, (std::vector<trace::Knob>{{"batch", batch}}));
    EXPECT_EQ(found.take.knobs, found.at);
  }
}

TEST(Predict, GivesWhatARunAtTheTargetWouldHaveRecorded) {
  const trace::TraceFile file = takes_by_batch(kTrain);
  Program real({{"batch", 77}});
  train(real);
  trace::TraceFile one;
  one.takes.push_back(real.take());
  const Prediction measured = of_take(one, one.takes[0], at_batch(77));
  const Prediction found = told(predict(file, at_batch(77)));
  expect_sums(measured);
  EXPECT_EQ(measured.law, Law::None);
  EXPECT_TRUE(measured.measured);
  EXPECT_EQ(measured.pool_peak, found.pool_peak);
  EXPECT_EQ(measured.pool_resident_peak, found.pool_resident_peak);
  EXPECT_EQ(measured.process_peak, found.process_peak);
  EXPECT_EQ(measured.owners.size(), found.owners.size());
  EXPECT_EQ(measured.why, "measured: 54 events of one run at batch=77");
}

TEST(Predict, DoesNotDependOnTheOrderOfTheTakes) {
  EXPECT_EQ(told(predict(takes_by_batch(kTrain, {4, 2, 3}), at_batch(50))).pool_peak.count, train_peak(50));
}

TEST(Predict, SaysWhatWasChecked) {
  EXPECT_EQ(told(predict(takes_by_batch(kTrain), at_batch(128))).why,
            "54 events the same in 3 takes, 9 sizes affine in batch, 5 constant; checked at batch 4");
}

TEST(Predict, TakesTwoKnobsWithTheirCrossTerms) {
  const auto picture = [](Program& p) {
    const auto batch = std::uint64_t(p.knob("batch")), side = std::uint64_t(p.knob("size"));
    p.op("load", batch * side * side * 12 + 7 * batch + side + 1);
  };
  std::vector<std::vector<trace::Knob>> grid;
  for (const std::int64_t size : {80, 32, 48, 64}) {
    for (const std::int64_t batch : {2, 3, 4}) grid.push_back({{"batch", batch}, {"size", size}});
  }
  const Question question{{{"size", 512}, {"batch", 100}}, std::nullopt, std::nullopt};
  const Prediction found = told(predict(takes(grid, picture), question));
  EXPECT_EQ(found.law, Law::Exact);
  EXPECT_EQ(found.pool_peak.count, 100u * 512 * 512 * 12 + 700 + 512 + 1);
  EXPECT_EQ(
      found.why,
      "3 events the same in 12 takes, 1 size on polynomials of batch and size, 0 constant; checked at batch 4 and "
      "size 80");
  grid.pop_back();
  EXPECT_EQ(refused(predict(takes(grid, picture), question)),
            "11 takes are no grid of each size with each other: 12 are needed");
}

TEST(Predict, RefusesKnobsThatDoNotMatch) {
  const trace::TraceFile file = takes_by_batch(kTrain);
  EXPECT_EQ(refused(predict(file, at_batch(1))),
            "batch=1 is below the smallest take, batch=2; record takes at smaller sizes, or run that size itself");
  EXPECT_EQ(refused(predict(file, {{{"batch", 9}, {"size", 4}}, {}, {}})),
            "the takes do not vary 'size'; they vary batch=2");
  EXPECT_EQ(refused(predict(file, {{}, {}, {}})),
            "at which batch? The takes vary it, so the target needs a value for it");
  EXPECT_EQ(refused(predict(file, {{{"batch", 9}, {"batch", 8}}, {}, {}})), "'batch' is given twice");
  EXPECT_EQ(refused(predict({}, at_batch(4))), "no take was recorded");
}

TEST(Predict, TellsWhereTakesPart) {
  const auto program = [](Program& p) {
    train(p);
    if (p.knob("batch") == 4) p.op("aten::mean", 4);
  };
  const NotTold found = not_told(predict(takes_by_batch(program), at_batch(128)));
  EXPECT_EQ(found.why,
            "the sizes tried do not do the same: at batch=2 the program ends; at batch=4 aten::mean begins, step 4");
}

TEST(Predict, NamesTheThresholdAndOtherSizesWhereTakesPart) {
  // From 16 on a sum by several threads sorts more.
  const auto program = [](Program& p) {
    const std::int64_t batch = p.knob("batch");
    const StorageId data = p.op("load", 4 * std::uint64_t(batch));
    const OpId sort = p.begin("aten::sort", {reads(data, {batch})});
    const StorageId sorted = p.make(4 * std::uint64_t(batch));
    if (batch > 16) p.free(p.make(1000));
    p.end(sort, {gives(sorted, {batch})});
  };
  const trace::TraceFile file = takes_by_batch(program, {15, 16, 17});
  const NotTold found = not_told(predict(file, at_batch(128)));
  EXPECT_NE(found.why.find("aten::sort makes 1000 B"), std::string::npos) << found.why;
  EXPECT_NE(found.why.find("17"), std::string::npos) << found.why;
}

TEST(Predict, TakesTheMeasuredTakeWhereTheSizesDoNotTell) {
  const auto program = [](Program& p) {
    train(p);
    if (p.knob("batch") == 4) p.op("more", 4);
  };
  const Prediction found = told(predict(takes_by_batch(program), at_batch(4)));
  EXPECT_TRUE(found.measured);
  EXPECT_EQ(found.pool_peak.count, train_peak(4));
}

TEST(Predict, IsOfTheOneTakeThatIsTheTarget) {
  const Prediction found = told(predict(takes_by_batch(kTrain, {1}), at_batch(1)));
  EXPECT_TRUE(found.measured);
  EXPECT_EQ(found.law, Law::None);
  EXPECT_EQ(refused(predict(takes_by_batch(kTrain, {1}), at_batch(7))),
            "'batch' has 1 sizes in the takes; at least 3 are needed, two to fit and one to check");
}

TEST(Predict, SaysWhichSizeFollowsNoLaw) {
  const auto program = [](Program& p) {
    const std::int64_t batch = p.knob("batch");
    p.op("load", 100 * std::uint64_t(batch));
    p.op("pad", batch == 4 ? 4097u : 1000u * std::uint64_t(batch));
  };
  EXPECT_EQ(not_told(predict(takes_by_batch(program), at_batch(128))).why,
            "pad makes 1.95 KiB, of a size that follows no law: 2,000, 3,000, 4,097 B");
}

TEST(Predict, IsABoundOfTheFirstStepsWhereEachLeavesMoreBehind) {
  const Prediction found = told(predict(takes_by_batch([](Program& p) { train(p, 3, 4096); }), at_batch(128)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_NE(found.why.find("each step leaves 4.00 KiB more behind"), std::string::npos) << found.why;
}

TEST(Predict, NamesWhatWasNotSeen) {
  trace::TraceFile file = takes_by_batch(kTrain);
  EXPECT_EQ(told(predict(file, at_batch(5))).phases_not_seen,
            (std::vector<std::string>{"what comes after step 3 (evaluation, sampling, checkpoints)"}));
  file.phases_left_out = {"checkpoint"};
  EXPECT_EQ(told(predict(file, at_batch(5))).phases_not_seen, (std::vector<std::string>{"checkpoint"}));
}

TEST(Predict, EstimatesTheStepFromTheTakes) {
  trace::TraceFile file = takes_by_batch(kTrain);
  for (trace::Take& take : file.takes) {
    // So long that each step of the take is in proportion to its batch.
    for (trace::Event& event : take.trace.events) event.at->count *= 100000 * take.knobs[0].value;
  }
  const double four = told(predict(file, at_batch(4))).step.count;
  const double twelve = told(predict(file, at_batch(12))).step.count;
  EXPECT_GT(four, 0);
  EXPECT_NEAR(twelve / four, 3, 0.01);
}

// What a process holds beside the pool.
trace::TraceFile with_outside(std::vector<std::uint64_t> kib) {
  trace::TraceFile file = takes_by_batch(kTrain);
  for (std::size_t i = 0; i < kib.size(); ++i) file.takes[i].process.outside_peak = Bytes{kib[i] * 1024};
  return file;
}
std::uint64_t outside_kib(const trace::TraceFile& file, std::int64_t batch) {
  const Prediction found = told(predict(file, at_batch(batch)));
  expect_sums(found);
  return row(found, "program and libraries").value_or(0_B).count / 1024;
}

TEST(Outside, IsTheLargestSeenAndSomeForChance) {
  EXPECT_EQ(outside_kib(with_outside({133000, 134100, 133600}), 128), 134100u + 3072);
  // A rise that chance could make, and one that stops.
  EXPECT_EQ(outside_kib(with_outside({133000, 133200, 133400}), 128), 133400u + 3072);
  EXPECT_EQ(outside_kib(with_outside({130000, 134000, 134100}), 128), 134100u + 3072);
}

TEST(Outside, GrowsAsSteeplyAsItEverDidWhereItRisesThroughout) {
  EXPECT_EQ(outside_kib(with_outside({130000, 131000, 131500}), 4), 131500u + 3072);
  EXPECT_EQ(outside_kib(with_outside({130000, 131000, 131500}), 14), 131500u + 10 * 1000 + 3072);
}

TEST(Outside, DoesNotGrowOverTheTakesOfOneProcess) {
  trace::TraceFile file = with_outside({130000, 131000, 131500});
  file.phases_left_out = {"checkpoint"};  // which only a rehearsal tells
  EXPECT_EQ(outside_kib(file, 14), 131500u + 3072);
}

TEST(Outside, LeavesOutWhatTheProgramTold) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    train(p);
    const std::int64_t bytes = 1000000 * p.knob("batch");
    p.charge(bytes);
    p.charge(-bytes);
  });
  const Prediction found = told(predict(file, at_batch(10)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Exact);
  EXPECT_EQ(row(found, "told by the program")->count, 10000000u);
  EXPECT_EQ(*row(found, "program and libraries"), 130_MiB - 2000000_B + 3_MiB);  // of the take at batch 2
}

TEST(Outside, ToldBytesWithoutALawAreABound) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    train(p);
    const std::int64_t batch = p.knob("batch");
    const std::int64_t bytes = batch == 3 ? 5000000 : 1000000 * batch;
    p.charge(bytes);
    p.charge(-bytes);
  });
  const Prediction found = told(predict(file, at_batch(30)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_EQ(row(found, "told by the program")->count, 50000000u);
}

TEST(OfTake, CountsWhatTheRecorderDidNotKeep) {
  Program program({{"batch", 2}});
  train(program);
  program.lose(1000);
  trace::TraceFile file;
  file.takes.push_back(program.take());
  file.takes[0].process.pool_live_peak = Bytes{train_peak(2) + 5000};
  const Prediction found = of_take(file, file.takes[0], at_batch(2));
  expect_sums(found);
  EXPECT_EQ(found.pool_peak.count, train_peak(2) + 5000);
  EXPECT_EQ(found.why, "measured: 55 events of one run at batch=2; 1,000 events in the middle were not kept");
}

std::optional<std::string> largest(const trace::TraceFile& file, Bytes memory, std::int64_t at = 4) {
  Question question = at_batch(at);
  question.memory = memory;
  const Prediction found = told(predict(file, question));
  if (found.largest.size() != 1) return std::nullopt;
  const LargestThatFits& one = found.largest[0];
  return one.knob + "=" + std::to_string(one.value) + (one.not_told_above ? " or more" : "");
}

TEST(Largest, IsTheLastThatFitsByTheByte) {
  const trace::TraceFile file = takes_by_batch(kTrain);
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t batch = 2 + std::int64_t(random() % 5000);
    const Bytes needed = told(predict(file, at_batch(batch))).process_peak;
    const Bytes more = told(predict(file, at_batch(batch + 1))).process_peak;
    ASSERT_GT(more, needed);
    EXPECT_EQ(largest(file, needed), "batch=" + std::to_string(batch));
    EXPECT_EQ(largest(file, more - 1_B), "batch=" + std::to_string(batch));
  }
}

TEST(Largest, IsNoneWhereTheSmallestDoesNotFit) { EXPECT_EQ(largest(takes_by_batch(kTrain), 1_MiB), "batch=0"); }

TEST(Largest, LooksAtSizesInTheStepsOfTheTakes) {
  const auto side = [](Program& p) { p.op("load", std::uint64_t(p.knob("batch") * p.knob("batch")) * 1000); };
  const trace::TraceFile file = takes_by_batch(side, {32, 48, 64, 80});
  const Bytes needed = told(predict(file, at_batch(1008))).process_peak;
  EXPECT_EQ(largest(file, needed + 16_B, 32), "batch=1008");
}

TEST(Largest, SaysWhereTheTakesTellNoMore) {
  // It shrinks to nothing at 12: beyond there is no such program.
  const auto shrinking = [](Program& p) {
    p.op("load", 1000000 * std::uint64_t(p.knob("batch")));
    p.op("rest", 1000 * (12 - std::uint64_t(p.knob("batch"))));
  };
  EXPECT_EQ(largest(takes_by_batch(shrinking), 1_GiB), "batch=11 or more");
}

}  // namespace
}  // namespace ullage::predict
