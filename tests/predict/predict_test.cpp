// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/predict.h"

#include "training.h"

#include <algorithm>
#include <optional>
#include <random>

namespace ullage::predict {
namespace {

const auto kTrain = [](Program& p) { train(p); };

// Checks what holds for every prediction: rows and owners add up.
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
    const Prediction found = predicted(predict(file, at_batch(batch)));
    expect_sums(found);
    EXPECT_EQ(found.law, Law::Exact);
    EXPECT_FALSE(found.measured);
    EXPECT_EQ(found.pool_peak.count, train_peak(batch)) << batch;
    EXPECT_EQ(found.peak_op, "conv_backward");
    EXPECT_EQ(found.peak_step, 2u);
    EXPECT_EQ(found.at, (std::vector<Knob>{{"batch", batch}}));
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
  const Prediction found = predicted(predict(file, at_batch(77)));
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
  EXPECT_EQ(predicted(predict(takes_by_batch(kTrain, {4, 2, 3}), at_batch(50))).pool_peak.count, train_peak(50));
}

TEST(Predict, SaysWhatWasChecked) {
  EXPECT_EQ(predicted(predict(takes_by_batch(kTrain), at_batch(128))).why,
            "54 events the same in 3 takes, 9 sizes affine in batch, 5 constant; checked at batch 4");
}

TEST(Predict, TakesTwoKnobsWithTheirCrossTerms) {
  const auto picture = [](Program& p) {
    const auto batch = std::uint64_t(p.knob("batch")), side = std::uint64_t(p.knob("size"));
    p.op("load", batch * side * side * 12 + 7 * batch + side + 1);
  };
  std::vector<std::vector<Knob>> grid;
  for (const std::int64_t size : {80, 32, 48, 64}) {
    for (const std::int64_t batch : {2, 3, 4}) grid.push_back({{"batch", batch}, {"size", size}});
  }
  const Question question{{{"size", 512}, {"batch", 100}}, std::nullopt, std::nullopt};
  const Prediction found = predicted(predict(takes(grid, picture), question));
  EXPECT_EQ(found.law, Law::Exact);
  EXPECT_EQ(found.pool_peak.count, 100u * 512 * 512 * 12 + 700 + 512 + 1);
  EXPECT_EQ(
      found.why,
      "3 events the same in 12 takes, 1 size on polynomials of batch and size, 0 constant; checked at batch 4 and "
      "size 80");
  grid.pop_back();
  EXPECT_EQ(refused(predict(takes(grid, picture), question)),
            "11 takes are too few: each size of one name with each of the other makes 12; record the missing ones");
}

// Draws a picture of width x height pixels from tokens of 16 x 16 pixels. Attention compares every token with every
// other, so some sizes follow the square of the area.
void draw(Program& p) {
  const auto width = std::uint64_t(p.knob("width")), height = std::uint64_t(p.knob("height"));
  const std::uint64_t tokens = width * height / 256;
  const StorageId codes = p.op("load", 1024 * tokens);
  for (int step = 0; step < 2; ++step) {
    const OpId compare = p.begin("aten::bmm", {reads(codes, {1, std::int64_t(tokens), 256})});
    const StorageId weights = p.make(4 * tokens * tokens);
    p.end(compare, {gives(weights, {1, std::int64_t(tokens), std::int64_t(tokens)})});
    const StorageId picture = p.op("decode", 12 * width * height + 4 * (width + height));
    p.free(p.op("cut", 1000000));
    p.free(weights);
    p.free(picture);
    p.step_end();
  }
}
std::uint64_t draw_peak(std::int64_t width, std::int64_t height) {
  const auto w = std::uint64_t(width), h = std::uint64_t(height), tokens = w * h / 256;
  return 1024 * tokens + 4 * tokens * tokens + 12 * w * h + 4 * (w + h) + 1000000;
}

std::vector<std::vector<Knob>> sizes(const std::vector<std::int64_t>& widths,
                                     const std::vector<std::int64_t>& heights) {
  std::vector<std::vector<Knob>> grid;
  for (const std::int64_t width : widths) {
    for (const std::int64_t height : heights) grid.push_back({{"width", width}, {"height", height}});
  }
  return grid;
}
const std::vector<std::int64_t> kSides = {144, 160, 176};
Question at_size(std::int64_t width, std::int64_t height, std::optional<Bytes> memory = std::nullopt) {
  return {{{"width", width}, {"height", height}}, memory, std::nullopt};
}

TEST(Predict, TakesThePointsOfAPictureEachAgainstEach) {
  const trace::TraceFile file = takes(sizes(kSides, kSides), draw);
  for (const auto& [width, height] : {std::pair{144, 144}, {176, 160}, {512, 384}, {896, 896}, {144, 4096}}) {
    const Prediction found = predicted(predict(file, at_size(width, height)));
    expect_sums(found);
    EXPECT_EQ(found.law, Law::Exact);
    EXPECT_EQ(found.pool_peak.count, draw_peak(width, height)) << width << " x " << height;
  }
  EXPECT_EQ(predicted(predict(file, at_size(896, 896))).why,
            "27 events the same in 9 takes, 5 sizes on polynomials of width and height, 2 constant; checked at width "
            "176 and height 176");
}

TEST(Predict, RefusesPicturesWithoutALaw) {
  const auto padded = [](Program& p) {
    draw(p);
    p.op("pad", std::uint64_t(p.knob("width") * p.knob("height") + 4095) / 4096 * 4096);
  };
  const NeedsTakes found = needs_takes(predict(takes(sizes(kSides, kSides), padded), at_size(896, 896)));
  EXPECT_TRUE(found.why.starts_with("pad makes 24.00 KiB, step 3, of a size that follows no law: 24,576, "))
      << found.why;
}

TEST(Predict, LeavesAKnobOutThatEveryTakeHasAlike) {
  const trace::TraceFile file = takes(sizes({144, 160, 176, 192}, {128}), draw);
  EXPECT_EQ(predicted(predict(file, at_size(512, 128))).pool_peak.count, draw_peak(512, 128));
  EXPECT_EQ(refused(predict(file, at_size(512, 144))),
            "every take is at height=128, so nothing is known of height=144; record takes at several values of it");
  EXPECT_EQ(refused(predict(takes(sizes({144, 160}, {128}), draw), at_size(512, 128))),
            "'width' has 2 sizes in the takes; at least 3 are needed, two to fit and one to check");
}

TEST(Predict, RefusesKnobsThatDoNotMatch) {
  const trace::TraceFile file = takes_by_batch(kTrain);
  EXPECT_EQ(refused(predict(file, at_batch(1))),
            "batch=1 is below the smallest take, batch=2; record takes at smaller sizes, or run that size itself");
  EXPECT_EQ(refused(predict(file, {{{"batch", 9}, {"size", 4}}, {}, {}})),
            "the takes do not vary 'size'; they vary batch=2");
  EXPECT_EQ(refused(predict(file, {{}, {}, {}})),
            "the takes vary 'batch', and no value for it is given; add --at batch=N");
  EXPECT_EQ(refused(predict(file, {{{"batch", 9}, {"batch", 8}}, {}, {}})), "'batch' is given twice; give it once");
  EXPECT_EQ(refused(predict({}, at_batch(4))), "the file has no take; record takes with 'ullage predict --keep FILE'");
}

TEST(Predict, TellsWhereTakesPart) {
  const auto program = [](Program& p) {
    train(p);
    if (p.knob("batch") == 4) p.op("aten::mean", 4);
  };
  const NeedsTakes found = needs_takes(predict(takes_by_batch(program), at_batch(128)));
  EXPECT_EQ(found.why,
            "the program does not do the same at all sizes tried: at batch=2 the program ends; at batch=4 aten::mean "
            "begins, step 4");
}

TEST(Predict, NamesTheThresholdAndOtherSizesWhereTakesPart) {
  // Above batch 16 the sort takes 1000 B of scratch, as a kernel may when it uses several threads.
  const auto program = [](Program& p) {
    const std::int64_t batch = p.knob("batch");
    const StorageId data = p.op("load", 4 * std::uint64_t(batch));
    const OpId sort = p.begin("aten::sort", {reads(data, {batch})});
    const StorageId sorted = p.make(4 * std::uint64_t(batch));
    if (batch > 16) p.free(p.make(1000));
    p.end(sort, {gives(sorted, {batch})});
  };
  const trace::TraceFile file = takes_by_batch(program, {15, 16, 17});
  const NeedsTakes found = needs_takes(predict(file, at_batch(128)));
  EXPECT_NE(found.why.find("aten::sort makes 1000 B"), std::string::npos) << found.why;
  EXPECT_NE(found.why.find("17"), std::string::npos) << found.why;
}

TEST(Predict, TakesTheMeasuredTakeWhereTheSizesDoNotTell) {
  const auto program = [](Program& p) {
    train(p);
    if (p.knob("batch") == 4) p.op("more", 4);
  };
  const Prediction found = predicted(predict(takes_by_batch(program), at_batch(4)));
  EXPECT_TRUE(found.measured);
  EXPECT_EQ(found.pool_peak.count, train_peak(4));
}

TEST(Predict, IsOfTheOneTakeThatIsTheTarget) {
  const Prediction found = predicted(predict(takes_by_batch(kTrain, {1}), at_batch(1)));
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
  EXPECT_EQ(needs_takes(predict(takes_by_batch(program), at_batch(128))).why,
            "pad makes 1.95 KiB, of a size that follows no law: 2,000, 3,000, 4,097 B");
}

TEST(Predict, IsABoundOfTheFirstStepsWhereEachLeavesMoreBehind) {
  const Prediction found = predicted(predict(takes_by_batch([](Program& p) { train(p, 3, 4096); }), at_batch(128)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_NE(found.why.find("each step leaves 4.00 KiB more allocated"), std::string::npos) << found.why;
}

TEST(Predict, NamesWhatWasNotSeen) {
  trace::TraceFile file = takes_by_batch(kTrain);
  EXPECT_EQ(predicted(predict(file, at_batch(5))).phases_not_seen,
            (std::vector<std::string>{"what comes after step 3 (evaluation, sampling, checkpoints)"}));
  file.phases_left_out = {"checkpoint"};
  EXPECT_EQ(predicted(predict(file, at_batch(5))).phases_not_seen, (std::vector<std::string>{"checkpoint"}));
}

TEST(Predict, EstimatesTheStepFromTheTakes) {
  // Convolutions take 50 s for each unit of the batch; the other ops take no time.
  trace::TraceFile file = takes_by_batch(kTrain);
  for (trace::Take& take : file.takes) {
    std::int64_t now = 0;
    for (trace::Event& event : take.trace.events) {
      const auto* end = std::get_if<trace::event::OpEnd>(&event.what);
      if (end != nullptr && take.trace.ops[end->op.value].name.starts_with("conv")) {
        take.details[end->op.value].took = Seconds{25.0 * static_cast<double>(take.knobs[0].value)};
        now += 25'000'000 * take.knobs[0].value;
      }
      event.at = trace::Microseconds{now};
    }
  }
  EXPECT_NEAR(predicted(predict(file, at_batch(12))).step.count, 600, 0.1);
  EXPECT_NEAR(predicted(predict(file, at_batch(128))).step.count, 6400, 0.1);
}

// Takes whose processes held these KiB outside the pool.
trace::TraceFile with_outside(std::vector<std::uint64_t> kib) {
  trace::TraceFile file = takes_by_batch(kTrain);
  for (std::size_t i = 0; i < kib.size(); ++i) file.takes[i].process.outside_peak = Bytes{kib[i] * 1024};
  return file;
}
std::uint64_t outside_kib(const trace::TraceFile& file, std::int64_t batch) {
  const Prediction found = predicted(predict(file, at_batch(batch)));
  expect_sums(found);
  return row(found, "program and libraries").value_or(0_B).count / 1024;
}

TEST(Outside, IsTheLargestSeenAndSomeForChance) {
  EXPECT_EQ(outside_kib(with_outside({133000, 134100, 133600}), 128), 134100u + 3072);
  // A rise that may be chance, and one that stops.
  EXPECT_EQ(outside_kib(with_outside({133000, 133200, 133400}), 128), 133400u + 3072);
  EXPECT_EQ(outside_kib(with_outside({130000, 134000, 134100}), 128), 134100u + 3072);
}

TEST(Outside, GrowsAsSteeplyAsItEverDidWhereItRisesThroughout) {
  EXPECT_EQ(outside_kib(with_outside({130000, 131000, 131500}), 4), 131500u + 3072);
  EXPECT_EQ(outside_kib(with_outside({130000, 131000, 131500}), 14), 131500u + 10 * 1000 + 3072);
}

TEST(Outside, DoesNotGrowOverTheTakesOfOneProcess) {
  trace::TraceFile file = with_outside({130000, 131000, 131500});
  file.phases_left_out = {"checkpoint"};  // a phase that was not rehearsed
  EXPECT_EQ(outside_kib(file, 14), 131500u + 3072);
}

// Charges the bytes and gives them back.
void charge_once(Program& p, std::int64_t bytes) {
  p.charge(bytes);
  p.charge(-bytes);
}

TEST(Outside, LeavesOutWhatTheProgramTold) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    train(p);
    const std::int64_t bytes = 1000000 * p.knob("batch");
    charge_once(p, bytes);
  });
  const Prediction found = predicted(predict(file, at_batch(10)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Exact);
  EXPECT_EQ(row(found, "charged by the program")->count, 10000000u);
  EXPECT_EQ(*row(found, "program and libraries"), 130_MiB - 2000000_B + 3_MiB);  // from the take at batch 2
}

TEST(Outside, ToldBytesWithoutALawAreABound) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    train(p);
    const std::int64_t batch = p.knob("batch");
    const std::int64_t bytes = batch == 3 ? 5000000 : 1000000 * batch;
    charge_once(p, bytes);
  });
  const Prediction found = predicted(predict(file, at_batch(30)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_EQ(row(found, "charged by the program")->count, 50000000u);
}

// Three values of one knob. The bytes are about those of a square, and no straight line.
TEST(Outside, TheBoundOfToldBytesGrowsAsFastAsTheyDid) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    train(p);
    const std::int64_t batch = p.knob("batch");
    const std::int64_t bytes = 1000000 * batch * batch + (batch == 3 ? 1 : 0);
    charge_once(p, bytes);
  });
  const Prediction found = predicted(predict(file, at_batch(30)));
  expect_sums(found);
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_GE(row(found, "charged by the program")->count, 900000000u);
  EXPECT_LE(row(found, "charged by the program")->count, 900000200u);
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
  const Prediction found = predicted(predict(file, question));
  if (found.largest.size() != 1) return std::nullopt;
  const LargestThatFits& one = found.largest[0];
  return one.knob + "=" + std::to_string(one.value) + (one.more_may_fit ? " or more" : "");
}

TEST(Largest, IsTheLastThatFitsByTheByte) {
  const trace::TraceFile file = takes_by_batch(kTrain);
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t batch = 2 + std::int64_t(random() % 5000);
    const Bytes needed = predicted(predict(file, at_batch(batch))).process_peak;
    const Bytes more = predicted(predict(file, at_batch(batch + 1))).process_peak;
    ASSERT_GT(more, needed);
    EXPECT_EQ(largest(file, needed), "batch=" + std::to_string(batch));
    EXPECT_EQ(largest(file, more - 1_B), "batch=" + std::to_string(batch));
  }
}

TEST(Largest, IsNoneWhereTheSmallestDoesNotFit) { EXPECT_EQ(largest(takes_by_batch(kTrain), 1_MiB), "batch=0"); }

TEST(Largest, LooksAtSizesInTheStepsOfTheTakes) {
  const auto side = [](Program& p) { p.op("load", std::uint64_t(p.knob("batch") * p.knob("batch")) * 1000); };
  const trace::TraceFile file = takes_by_batch(side, {32, 48, 64, 80});
  const Bytes needed = predicted(predict(file, at_batch(1008))).process_peak;
  EXPECT_EQ(largest(file, needed + 16_B, 32), "batch=1008");
}

TEST(Largest, SquareIsTheLastThatFitsByTheByte) {
  trace::TraceFile file = takes(sizes(kSides, kSides), draw);
  const Bytes needed = predicted(predict(file, at_size(784, 784))).process_peak;
  EXPECT_EQ(predicted(predict(file, at_size(896, 512, needed))).largest_square, std::nullopt)
      << "the sides are not told";
  file.sides = {"width", "height"};
  const auto square = [&](std::int64_t width, std::int64_t height, Bytes memory) {
    const Prediction found = predicted(predict(file, at_size(width, height, memory)));
    return found.largest_square ? found.largest_square->found.value : -1;
  };
  EXPECT_EQ(square(896, 512, needed), 784);
  EXPECT_EQ(square(144, 160, needed), 784);
  EXPECT_EQ(square(896, 896, needed - 1_B), 768);
  EXPECT_EQ(square(896, 896, 1_MiB), 0);
  const Prediction found = predicted(predict(file, at_size(896, 512, needed)));
  EXPECT_EQ(found.largest_square->sides, file.sides);
  EXPECT_EQ(found.largest_square->found.process_peak, needed);
  ASSERT_EQ(found.largest.size(), 2u);
  EXPECT_GT(found.largest[0].value, 784) << "width, with the height asked for";
  EXPECT_LT(found.largest[1].value, 784);
}

TEST(Largest, SquareIsNotToldWhereTheTakesSayNothingOfSquares) {
  const auto square = [](const std::vector<std::int64_t>& widths, const std::vector<std::int64_t>& heights) {
    trace::TraceFile file = takes(sizes(widths, heights), draw);
    file.sides = {"width", "height"};
    const auto at = at_size(widths.back(), heights.back(), 1_GiB);
    const std::optional<LargestSquare> found = predicted(predict(file, at)).largest_square;
    return found ? found->found.value : -1;
  };
  EXPECT_EQ(square({144, 160, 176, 192}, {128}), -1);
  EXPECT_EQ(square(kSides, {152, 168, 184}), -1);
  EXPECT_EQ(square(kSides, {144, 176, 208}), -1);
  EXPECT_EQ(square(kSides, {224, 240, 256}), square(kSides, kSides));
}

TEST(Largest, SaysWhereTheTakesTellNoMore) {
  // One storage shrinks to nothing at batch 12, so the takes say nothing about larger batches.
  const auto shrinking = [](Program& p) {
    p.op("load", 1000000 * std::uint64_t(p.knob("batch")));
    p.op("rest", 1000 * (12 - std::uint64_t(p.knob("batch"))));
  };
  EXPECT_EQ(largest(takes_by_batch(shrinking), 1_GiB), "batch=11 or more");
}

}  // namespace
}  // namespace ullage::predict
