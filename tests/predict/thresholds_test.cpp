// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/thresholds.h"

#include "ullage/predict/predict.h"
#include "program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace ullage::predict {
namespace {

using Sizes = std::vector<std::int64_t>;

// A program of one op whose tensors have these sizes at a batch (and side).
struct OneOp {
  std::string name;
  std::function<Sizes(std::int64_t batch, std::int64_t side)> input;
  std::function<Sizes(std::int64_t batch, std::int64_t side)> output;
  std::vector<Sizes> fixed;  // further inputs
  std::uint32_t threads = 2;
};

trace::Take take_of(const OneOp& op, const std::vector<Knob>& knobs) {
  Program program(knobs);
  const std::int64_t batch = program.knob("batch");
  const std::int64_t side = knobs.size() > 1 ? program.knob("side") : 8;
  const StorageId in = program.from_before(4096);
  std::vector<trace::TensorUse> reading = {reads(in, op.input(batch, side))};
  for (const Sizes& sizes : op.fixed) reading.push_back(reads(in, sizes));
  const OpId running = program.begin(op.name, reading);
  const StorageId out = program.make(4096);
  program.end(running, {gives(out, op.output(batch, side))});
  trace::Take take = program.take();
  take.process.threads = op.threads;
  return take;
}

trace::TraceFile file_of(const OneOp& op, const Sizes& batches, const Sizes& sides = {}) {
  trace::TraceFile file;
  for (const std::int64_t batch : batches) {
    if (sides.empty()) file.takes.push_back(take_of(op, {{"batch", batch}}));
    for (const std::int64_t side : sides) file.takes.push_back(take_of(op, {{"batch", batch}, {"side", side}}));
  }
  return file;
}

Sequence sequence_of(const trace::TraceFile& file) { return arrange(file).value(); }

std::vector<Crossing> crossings_of(const OneOp& op, const Sizes& batches, std::int64_t target) {
  const trace::TraceFile file = file_of(op, batches);
  return crossings(file, sequence_of(file), take_of(op, {{"batch", target}}));
}

std::optional<Grid> others_of(const OneOp& op, const Sizes& batches, std::int64_t target) {
  const trace::TraceFile file = file_of(op, batches);
  const Sequence sequence = sequence_of(file);
  const std::vector<Crossing> found = crossings(file, sequence, take_of(op, {{"batch", target}}));
  return other_sizes(file, sequence, found, {{"batch", target}});
}

const OneOp kPointwise{"aten::convolution",
                       [](std::int64_t batch, std::int64_t side) {
                         return Sizes{batch, 64, side, side};
                       },
                       [](std::int64_t batch, std::int64_t side) {
                         return Sizes{batch, 128, side, side};
                       },
                       {{128, 64, 1, 1}},
                       1};

OneOp with_threads(OneOp op, std::uint32_t threads) {
  op.threads = threads;
  return op;
}

TEST(Rules, EachSaysWhatAndWhere) {
  std::set<std::string_view> said;
  for (const Rule& rule : rules()) {
    EXPECT_FALSE(rule.ops.empty());
    EXPECT_TRUE(rule.threshold > 0 || rule.threshold == kThreads || rule.threshold == kEvery) << rule.says;
    EXPECT_FALSE(rule.source.empty()) << rule.says;
    EXPECT_TRUE(said.insert(rule.says).second) << rule.says;
  }
}

TEST(Crossings, NoneWhereAllIsOnOneSide) {
  EXPECT_TRUE(crossings_of(kPointwise, {2, 3, 4}, 15).empty());
  EXPECT_TRUE(crossings_of(kPointwise, {16, 17, 18}, 128).empty());
}

TEST(Crossings, APointwiseConvolutionOfOneThreadCrossesAtBatch16) {
  const std::vector<Crossing> found = crossings_of(kPointwise, {2, 3, 4}, 16);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].op, "aten::convolution");
  EXPECT_EQ(found[0].threshold, 16);
  EXPECT_EQ(found[0].least, 2);
  EXPECT_EQ(found[0].most, 4);
  EXPECT_EQ(found[0].target, 16);
  EXPECT_EQ(crossings_of(kPointwise, {15, 16, 17}, 18).size(), 1u);  // takes lie on both sides of the threshold
}

TEST(Crossings, NotOfALargerKernelNorOfSeveralThreads) {
  OneOp three = kPointwise;
  three.fixed = {{128, 64, 3, 3}};
  EXPECT_TRUE(crossings_of(three, {2, 3, 4}, 128).empty());
  EXPECT_TRUE(crossings_of(with_threads(kPointwise, 2), {2, 3, 4}, 128).empty());
}

TEST(Crossings, WithoutOneDnnEveryConvolutionCrossesAtBatch16) {
  OneOp three = with_threads(kPointwise, 2);
  three.fixed = {{128, 64, 3, 3}};
  trace::TraceFile file = file_of(three, {2, 3, 4});
  file.onednn = false;
  const std::vector<Crossing> found = crossings(file, sequence_of(file), take_of(three, {{"batch", 16}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].threshold, 16);
  EXPECT_EQ(rules()[found[0].row].when, When::WithoutOneDnn);
}

TEST(Crossings, FewerPicturesThanThreads) {
  EXPECT_EQ(crossings_of(with_threads(kPointwise, 8), {2, 3, 4}, 128).size(), 1u);
  EXPECT_EQ(crossings_of(with_threads(kPointwise, 8), {2, 3, 4}, 128)[0].threshold, 8);
  EXPECT_TRUE(crossings_of(with_threads(kPointwise, 8), {8, 9, 10}, 128).empty());
}

TEST(Crossings, ASizeOfOneIsASideOfItsOwn) {
  const OneOp add{"aten::add.Tensor",
                  [](std::int64_t batch, std::int64_t) {
                    return Sizes{batch, 64};
                  },
                  [](std::int64_t batch, std::int64_t) {
                    return Sizes{batch, 64};
                  },
                  {},
                  1};
  EXPECT_EQ(crossings_of(add, {1, 2, 3}, 8).size(), 1u);
  EXPECT_TRUE(crossings_of(add, {2, 3, 4}, 8).empty());
}

TEST(Crossings, ARecurrentLayerOfOneDnnHasNoLaw) {
  const OneOp layer{"aten::mkldnn_rnn_layer",
                    [](std::int64_t batch, std::int64_t) {
                      return Sizes{16, batch, 32};
                    },
                    [](std::int64_t batch, std::int64_t) {
                      return Sizes{16, batch, 64};
                    },
                    {},
                    2};
  EXPECT_EQ(crossings_of(layer, {2, 3, 4}, 5).size(), 1u);
  EXPECT_FALSE(others_of(layer, {2, 3, 4}, 100).has_value());
}

TEST(Crossings, AKernelThatGrowsWithTheKnobHasNoLaw) {
  const auto take = [](std::int64_t batch) {
    OneOp op = kPointwise;
    op.fixed = {{128, 64, batch, batch}};
    return take_of(op, {{"batch", batch}});
  };
  trace::TraceFile file;
  for (const std::int64_t batch : {2, 3, 4}) file.takes.push_back(take(batch));
  const Sequence sequence = sequence_of(file);
  const std::vector<Crossing> found = crossings(file, sequence, take(8));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].target, 8);
  EXPECT_EQ(rules()[found[0].row].quantity, Quantity::Kernel);
  EXPECT_FALSE(other_sizes(file, sequence, found, {{"batch", 8}}).has_value());
}

TEST(Crossings, TheNameOfAnOverloadIsNotLookedAt) {
  OneOp op = kPointwise;
  op.name = "aten::convolution.out";
  EXPECT_EQ(crossings_of(op, {2, 3, 4}, 16).size(), 1u);
  op.name = "aten::convolution_of_mine";
  EXPECT_TRUE(crossings_of(op, {2, 3, 4}, 16).empty());
}

TEST(OtherSizes, AreTheLeastOnTheTargetsSide) {
  const std::optional<Grid> grid = others_of(kPointwise, {2, 3, 4}, 128);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->axes[0].name, "batch");
  EXPECT_EQ(grid->axes[0].values, (Sizes{16, 17, 18}));
}

TEST(OtherSizes, NoneWhereTheyWouldReachTheTarget) {
  EXPECT_FALSE(others_of(kPointwise, {2, 3, 4}, 18).has_value());
  EXPECT_EQ(others_of(kPointwise, {2, 3, 4}, 19).value().axes[0].values, (Sizes{16, 17, 18}));
}

TEST(OtherSizes, KeepTheStepAndTheTargetsRemainder) {
  const OneOp rows{"aten::_cdist_forward",
                   [](std::int64_t batch, std::int64_t) {
                     return Sizes{batch, 16};
                   },
                   [](std::int64_t batch, std::int64_t) {
                     return Sizes{batch, batch};
                   },
                   {},
                   2};
  EXPECT_EQ(others_of(rows, {8, 12, 16, 20}, 101).value().axes[0].values, (Sizes{29, 33, 37, 41}));
  EXPECT_EQ(others_of(rows, {8, 16, 22, 32}, 101).value().axes[0].values, (Sizes{29, 35, 41, 47}));
}

TEST(OtherSizes, WithoutACrossingTheyHaveTheTargetsRemainder) {
  const trace::TraceFile file = file_of(kPointwise, {32, 48, 64});
  const Sequence sequence = sequence_of(file);
  EXPECT_EQ(other_sizes(file, sequence, {}, {{"batch", 100}}).value().axes[0].values, (Sizes{36, 52, 68}));
  EXPECT_FALSE(other_sizes(file, sequence, {}, {{"batch", 128}}).has_value());  // the file has those sizes already
}

TEST(OtherSizes, OfTwoKnobsMoveTheOneThatMatters) {
  const trace::TraceFile file = file_of(kPointwise, {2, 3, 4}, {8, 16, 24, 32});
  const Sequence sequence = sequence_of(file);
  const std::vector<Knob> at = {{"batch", 128}, {"side", 128}};
  const std::vector<Crossing> found = crossings(file, sequence, take_of(kPointwise, at));
  ASSERT_EQ(found.size(), 1u);
  const std::optional<Grid> grid = other_sizes(file, sequence, found, at);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->axes[0].values, (Sizes{16, 17, 18}));
  EXPECT_EQ(grid->axes[1].values, (Sizes{8, 16, 24, 32}));
}

// ---- scratch

// A take of a convolution's backward op. `side` is that of the input; stride 2 halves it.
trace::Take gradient(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t side,
                     std::int64_t stride, std::uint32_t threads, bool frozen = false) {
  Program program({{"batch", batch}});
  const StorageId in_before = program.from_before(4096);
  const OpId op =
      program.begin("aten::convolution_backward",
                    {reads(in_before, {batch, out, side / stride, side / stride}),
                     reads(in_before, {batch, in, side, side}), reads(in_before, {out, in, kernel, kernel})});
  const StorageId made = program.make(4096);
  std::vector<trace::TensorUse> outputs = {gives(made, {batch, in, side, side})};
  if (!frozen) outputs.push_back(gives(made, {out, in, kernel, kernel}));
  program.end(op, outputs);
  trace::Take take = program.take();
  take.process.threads = threads;
  return take;
}

// Returns the slack if take and target have the same side, so that only the batch differs.
std::uint64_t allowed(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t side,
                      std::int64_t stride, std::uint32_t threads) {
  trace::TraceFile file;
  file.takes.push_back(gradient(2, in, out, kernel, side, stride, threads));
  const std::vector<Slack> found =
      slack_of_ops(file, Sequence{}, gradient(batch, in, out, kernel, side, stride, threads));
  return found.empty() ? 0 : found[0].bytes.count;
}

struct MeasuredScratch {
  std::int64_t batch, in, out, kernel, side, stride;
  std::uint32_t threads;
  std::uint64_t bytes;
};

// Extra blocks that torch 2.13 with oneDNN made at these batches, on a machine with AVX-512.
TEST(Allowances, CoverWhatWasMeasured) {
  const MeasuredScratch measured[] = {
      {13, 64, 64, 3, 16, 1, 2, 156032},    {40, 64, 64, 3, 16, 1, 2, 156032},  {6, 64, 128, 1, 16, 1, 2, 41088},
      {25, 64, 64, 3, 16, 1, 4, 451456},    {26, 64, 64, 3, 16, 1, 8, 476288},  {3, 64, 128, 4, 128, 2, 2, 533120},
      {24, 128, 256, 4, 64, 2, 2, 2106496}, {23, 64, 128, 4, 32, 2, 4, 533120}, {3, 3, 64, 4, 64, 2, 2, 20992}};
  for (const MeasuredScratch& one : measured) {
    EXPECT_GE(allowed(one.batch, one.in, one.out, one.kernel, one.side, one.stride, one.threads), one.bytes)
        << one.in << " to " << one.out << " at batch " << one.batch;
  }
}

TEST(Allowances, NoneWhereThreadsShareChannelsForSure) {
  EXPECT_EQ(allowed(128, 1024, 2048, 4, 8, 2, 2), 0u);  // the op at which DCGAN-256 has its peak
  EXPECT_EQ(allowed(128, 64, 64, 3, 16, 1, 1), 0u);     // one thread
  EXPECT_GT(allowed(4096, 1024, 2048, 4, 8, 2, 2), 0u);
}

// Pictures that a data loader's worker made are not the pool's, so a take lacks them.
TEST(Allowances, OfAConvolutionWhoseInputIsNotThePools) {
  const auto without_input = [](trace::Take take) {
    take.details[0].uses.erase(take.details[0].uses.begin() + 1);
    return take;
  };
  const auto slack = [&](std::int64_t batch, std::int64_t side) {
    trace::TraceFile file;
    file.takes.push_back(without_input(gradient(2, 1024, 2048, 4, 8, 2, 2)));
    return slack_of_ops(file, Sequence{}, without_input(gradient(batch, 1024, 2048, 4, side, 2, 2)));
  };
  ASSERT_EQ(slack(128, 8).size(), 1u) << "threads may divide the batch";
  EXPECT_GE(slack(128, 8)[0].bytes, Bytes{1024 * 2048 * 4 * 4 * 4}) << "one copy of the weights";
  EXPECT_LT(slack(128, 8)[0].bytes, Bytes{1024 * 2048 * 4 * 4 * 5});
  EXPECT_GE(slack(128, 16)[0].bytes, Bytes{1ull << 50}) << "nothing is known";
}

TEST(Allowances, OfOtherSidesThanTheTakesHoldMore) {
  trace::TraceFile file;
  file.takes.push_back(gradient(2, 64, 128, 4, 64, 2, 2));
  const std::vector<Slack> same = slack_of_ops(file, Sequence{}, gradient(2, 64, 128, 4, 64, 2, 2));
  const std::vector<Slack> other = slack_of_ops(file, Sequence{}, gradient(2, 64, 128, 4, 136, 2, 2));
  ASSERT_EQ(same.size(), 1u);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_GE(other[0].bytes.count, same[0].bytes.count + 2617392);  // as measured: one picture for each thread
}

// Returns the slack if the target's picture has another side than the take's (160), with the same weights.
std::uint64_t allowed_of_side(std::int64_t side, std::int64_t kernel, std::int64_t stride, bool frozen) {
  trace::TraceFile file;
  file.takes.push_back(gradient(2, 64, 128, kernel, 160, stride, 2, frozen));
  const auto found = slack_of_ops(file, Sequence{}, gradient(2, 64, 128, kernel, side, stride, 2, frozen));
  return found.empty() ? 0 : found[0].bytes.count;
}

// Measured with sides of 9 to 896 and kernels of 1, 3, 5 and 7 pixels: at stride 1 every block follows its law.
TEST(Allowances, NoneOfOtherSidesWhereTheKernelMovesByAPixel) {
  EXPECT_EQ(allowed_of_side(896, 3, 1, true), 0u);
  EXPECT_EQ(allowed_of_side(896, 1, 1, true), 0u);
  EXPECT_GE(allowed_of_side(896, 3, 2, true), 2u * 4 * 128 * 448 * 448);
  EXPECT_GE(allowed_of_side(896, 3, 1, false), 4u * 128 * 64 * 9) << "a copy of the gradient of the weights";
  EXPECT_GE(allowed_of_side(20, 3, 1, true), 4u * 128 * 20 * 20) << "so small a side tells no stride";
}

TEST(VaryingScratch, OfAReductionIsAFewBytesForEachThread) {
  const OneOp sum{"aten::sum",
                  [](std::int64_t batch, std::int64_t) {
                    return Sizes{batch, 1024};
                  },
                  [](std::int64_t, std::int64_t) { return Sizes{}; },
                  {},
                  2};
  EXPECT_GE(varying_scratch(take_of(sum, {{"batch", 64}}), OpId{0}).count, 16u);
  EXPECT_LE(varying_scratch(take_of(sum, {{"batch", 64}}), OpId{0}).count, 1024u);
  EXPECT_EQ(varying_scratch(take_of(with_threads(sum, 1), {{"batch", 64}}), OpId{0}), Bytes{});
  OneOp rows = sum;
  rows.output = [](std::int64_t batch, std::int64_t) { return Sizes{batch}; };
  EXPECT_EQ(varying_scratch(take_of(rows, {{"batch", 64}}), OpId{0}), Bytes{});
}

TEST(VaryingScratch, OfAttentionHoldsTheKernelsBuffers) {
  const auto attention = [](std::int64_t tokens) {
    const OneOp op{"aten::_scaled_dot_product_flash_attention_for_cpu",
                   [=](std::int64_t batch, std::int64_t) {
                     return Sizes{batch, 4, tokens, 32};
                   },
                   [=](std::int64_t batch, std::int64_t) {
                     return Sizes{batch, 4, tokens, 32};
                   },
                   {},
                   2};
    return varying_scratch(take_of(op, {{"batch", 2}}), OpId{0}).count;
  };
  // Each of two threads needs scores, sums, maxima and results of a block of queries, in float.
  EXPECT_GE(attention(1024), 2u * 4 * (256 * 512 + 2 * 256 + 256 * 32));
  EXPECT_GE(attention(160), 2u * 4 * (32 * 160 + 2 * 32 + 32 * 32));
  EXPECT_EQ(attention(1024), attention(2048));
}

TEST(VaryingScratch, DamagedSizesMakeNothingThatPasses64Bits) {
  const OneOp op{"aten::convolution_backward",
                 [](std::int64_t, std::int64_t) {
                   return Sizes{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
                 },
                 [](std::int64_t, std::int64_t) {
                   return Sizes{-1, INT64_MIN, 0, 1};
                 },
                 {{INT64_MAX, INT64_MAX, 1, 1}, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}},
                 UINT32_MAX};
  EXPECT_LE(varying_scratch(take_of(op, {{"batch", 2}}), OpId{0}).count, 1ull << 60);
}

}  // namespace
}  // namespace ullage::predict
