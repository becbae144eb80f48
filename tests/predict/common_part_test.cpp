// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/common_part.h"
#include "ullage/predict/longest_common.h"

#include "training.h"

#include <algorithm>
#include <random>

namespace ullage::predict {
namespace {

// The length of a longest common subsequence, by the textbook's table.
std::size_t length_by_table(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  return table[a.size()][b.size()];
}

TEST(LongestCommon, IsAsLongAsTheTableSays) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> a(random() % 20), b(random() % 20);
    for (auto* one : {&a, &b}) {
      for (std::uint64_t& entry : *one) entry = random() % 4;
    }
    const auto found = longest_common(a, b, 40);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->size(), length_by_table(a, b)) << round;
    for (std::size_t i = 0; i < found->size(); ++i) {
      const auto [x, y] = (*found)[i];
      EXPECT_EQ(a.at(x), b.at(y));
      EXPECT_TRUE(i == 0 || ((*found)[i - 1].first < x && (*found)[i - 1].second < y));
    }
    const std::size_t differences = a.size() + b.size() - 2 * found->size();
    EXPECT_TRUE(longest_common(a, b, differences));
    EXPECT_TRUE(differences == 0 || !longest_common(a, b, differences - 1));
  }
}

// Trains as train() does, and `more` runs in each step after the forward op, whose result it gets.
Does training_with(const std::function<void(Program&, const trace::TensorUse&)>& more) {
  return [more](Program& p) {
    const std::int64_t batch = p.knob("batch");
    const auto images = std::uint64_t(batch);
    const StorageId weight = p.op("make_weight", kModel);
    p.role(weight, trace::Role::Parameter, "net.weight");
    for (int step = 0; step < 3; ++step) {
      const StorageId input = p.op("load", 40000 * images);
      const StorageId out = p.op("conv", 100000 * images, {reads(input, {batch, 10000}), reads(weight, {262144})});
      p.save(out);
      more(p, reads(out, {batch, 25000}));
      p.free(p.op("conv_backward", 200000 * images, {reads(out, {batch, 25000})}));
      p.unsave(out);
      p.free(out);
      p.free(input);
      p.step_end();
    }
  };
}
Bytes plain_peak(std::int64_t batch) { return Bytes{kModel + 340000 * std::uint64_t(batch)}; }

Prediction from_common(const Does& program, std::int64_t batch) {
  const trace::TraceFile file = takes_by_batch(program);
  Question question = at_batch(batch);
  EXPECT_FALSE(needs_takes(predict(file, question)).why.empty()) << "the takes do not do the same";
  question.from_common_part = true;
  return predicted(predict(file, question));
}

// One matching of two lists for each picture of the batch.
TEST(CommonPart, ALoopOverTheBatchIsABoundThatHoldsToTheByte) {
  const Does program = training_with([](Program& p, const trace::TensorUse& out) {
    for (std::int64_t i = 0; i < p.knob("batch"); ++i) p.free(p.op("match", 5000, {out}));
  });
  const Prediction found = from_common(program, 64);
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_EQ(found.pool_peak, plain_peak(64));
  EXPECT_EQ(found.pool_peak, measured_peak(program, 64));
  EXPECT_EQ(found.lawless, 0_B);
  EXPECT_NE(found.why.find("in common, and up to 6 more; 0 B at the peak follow no law"), std::string::npos)
      << found.why;
}

// What the loop makes lives until the peak.
TEST(CommonPart, WhatALoopOverTheBatchKeepsGrowsAsItDid) {
  const Does program = training_with([](Program& p, const trace::TensorUse& out) {
    std::vector<StorageId> kept;
    for (std::int64_t i = 0; i < p.knob("batch"); ++i) kept.push_back(p.op("match", 5000, {out}));
    p.free(p.op("conv_backward", 300000 * std::uint64_t(p.knob("batch")), {out}));
    for (const StorageId id : kept) p.free(id);
  });
  const Prediction found = from_common(program, 64);
  EXPECT_GE(found.pool_peak, measured_peak(program, 64));
  EXPECT_LE(found.pool_peak, measured_peak(program, 64) + 20000_B) << "two are in all takes, the rest is on a line";
  EXPECT_EQ(found.lawless, 0_B) << "it follows the batch";
}

TEST(CommonPart, ScratchOfOneSizeOnlyCountsInProportion) {
  const Does program = training_with([](Program& p, const trace::TensorUse& out) {
    const OpId op = p.begin("bmm", {out});
    const StorageId scratch = p.knob("batch") == 3 ? p.make(16384) : p.make(64);
    const StorageId more = p.knob("batch") == 3 ? p.make(128) : scratch;
    p.free(p.op("conv_backward", 300000 * std::uint64_t(p.knob("batch")), {out}));
    if (more != scratch) p.free(more);
    p.free(scratch);
    p.end(op);
  });
  const Prediction found = from_common(program, 30);
  const Bytes measured = measured_peak(program, 30);
  EXPECT_GE(found.pool_peak, measured);
  EXPECT_LE(found.pool_peak, measured + Bytes{10 * (16384 + 128) + 100});
  EXPECT_GT(found.lawless, Bytes{10 * 16384});
}

// What only some takes do grows, but at the sizes tried a constant storage is larger, which dies just before.
TEST(CommonPart, WhatGrowsIsNotHiddenByWhatDoesNot) {
  for (const bool is_common : {true, false}) {
    const Does program = training_with([&](Program& p, const trace::TensorUse& out) {
      const std::string own = std::to_string(p.knob("batch"));
      p.free(p.op(is_common ? "mask" : "mask" + own, 3000000, {out}));
      p.free(p.op("index" + own, 500000 * std::uint64_t(p.knob("batch")), {out}));
    });
    trace::TraceFile file = takes_by_batch(program);
    Question question = at_batch(64);
    question.from_common_part = true;
    const Answered answer = predict(file, question);
    ASSERT_TRUE(answer.ok());
    if (const auto* found = std::get_if<Prediction>(&*answer)) {
      EXPECT_GE(found->pool_peak, measured_peak(program, 64)) << is_common;
    }
  }
}

// The op is one of those whose scratch follows no law, and its sizes tell how much that is.
TEST(CommonPart, IsNothingIfAConvolutionsTensorsDiffer) {
  const auto program = [](std::int64_t odd) {
    return training_with([odd](Program& p, const trace::TensorUse& out) {
      const std::int64_t batch = p.knob("batch");
      const StorageId weights = p.op("weights", 4096, {out});
      const std::int64_t side = batch == 3 ? odd : 8;
      p.free(p.op(
          "aten::convolution_backward", 64 * std::uint64_t(batch),
          {reads(weights, {batch, 16, 8, 8}), reads(weights, {batch, 16, side, 8}), reads(weights, {16, 16, 3, 3})}));
      if (batch == 3) p.free(p.op("abs", 8, {out}));
      p.free(weights);
    });
  };
  const auto part = [&](std::int64_t odd) {
    trace::TraceFile file = takes_by_batch(program(odd));
    for (trace::Take& take : file.takes) take.process.threads = 2;
    const Sequence arranged = arrange(file).value();
    return common_part(file, arranged.grid, arranged.order, {30}).has_value();
  };
  EXPECT_TRUE(part(8));
  EXPECT_FALSE(part(9));
}

// A storage dies later in one take than in the others.
TEST(CommonPart, AStorageDiesWhereItDiesLatest) {
  const Does program = training_with([](Program& p, const trace::TensorUse& out) {
    const StorageId late = p.op("batch_norm", 1000, {out});
    if (p.knob("batch") != 3) p.free(late);
    p.op("relu", 8, {out});
    p.free(p.op("conv_backward", 300000 * std::uint64_t(p.knob("batch")), {out}));
    if (p.knob("batch") == 3) p.free(late);
  });
  const Prediction found = from_common(program, 30);
  EXPECT_EQ(found.pool_peak, measured_peak(program, 30) + 1000_B);
  EXPECT_EQ(found.lawless, 0_B);
}

TEST(CommonPart, IsNothingIfItIsTooLittle) {
  const trace::TraceFile file = takes_by_batch(training_with([](Program& p, const trace::TensorUse& out) {
    if (p.knob("batch") == 3) p.free(p.op("sort", 2000000, {out}));
  }));
  const Sequence arranged = arrange(file).value();
  EXPECT_FALSE(common_part(file, arranged.grid, arranged.order, {30})) << "batch 2 holds 2 MB less than the new take";
  trace::TraceFile lost = takes_by_batch(training_with([](Program&, const trace::TensorUse&) {}));
  EXPECT_TRUE(common_part(lost, arranged.grid, arranged.order, {30}));
  lost.takes[1].gaps.push_back({EventId{3}, 7});
  EXPECT_FALSE(common_part(lost, arranged.grid, arranged.order, {30}));
}

}  // namespace
}  // namespace ullage::predict
