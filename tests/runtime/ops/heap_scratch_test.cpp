// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/heap_scratch.h"

#include "ullage/runtime/ops/op_info.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace ullage::runtime {
namespace {

struct Sizes {
  std::int64_t batch = 1, inputs = 16, outputs = 3, kernel = 1, side = 32;
  at::ScalarType type = at::kFloat;
  bool input_wanted = true;
};

// One backward pass of a convolution, as the interceptor sees it.
class Backward final {
 public:
  explicit Backward(const Sizes& s)
      : gradient_(at::empty({s.batch, s.outputs, s.side, s.side}, s.type)),
        input_(at::empty({s.batch, s.inputs, s.side, s.side}, s.type)),
        weight_(at::empty({s.outputs, s.inputs, s.kernel, s.kernel}, s.type)) {
    const std::int64_t around = s.kernel / 2;
    arguments_ = {gradient_,
                  input_,
                  weight_,
                  c10::IValue(),
                  std::vector<std::int64_t>{1, 1},
                  std::vector<std::int64_t>{around, around},
                  std::vector<std::int64_t>{1, 1},
                  false,
                  std::vector<std::int64_t>{0, 0},
                  std::int64_t{1},
                  c10::List<bool>({s.input_wanted, true, false})};
    call.name = "aten::convolution_backward";
    call.arguments = arguments_;
    for (const at::Tensor* one : {&gradient_, &input_, &weight_}) {
      call.inputs.push_back(*storage_use(*one->unsafeGetTensorImpl()));
    }
  }
  OpCall call;

 private:
  at::Tensor gradient_, input_, weight_;
  std::vector<c10::IValue> arguments_;
};

class HeapScratchTest : public testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_); }
  const int threads_ = at::get_num_threads();
};

TEST_F(HeapScratchTest, IsAPictureWithACopyForEachPlaceOfTheKernel) {
  EXPECT_EQ(heap_scratch(Backward(Sizes{.batch = 2}).call), Bytes{16 * 32 * 32 * 4}) << "one thread, one picture";
  EXPECT_EQ(heap_scratch(Backward(Sizes{.kernel = 3, .type = at::kDouble}).call), Bytes{16 * 9 * 32 * 32 * 8});
  at::set_num_threads(2);
  EXPECT_EQ(heap_scratch(Backward(Sizes{.batch = 4, .kernel = 3, .type = at::kDouble}).call),
            Bytes{2 * 16 * 9 * 32 * 32 * 8});
}

TEST_F(HeapScratchTest, IsNothingWhereOtherKernelsCompute) {
  EXPECT_EQ(heap_scratch(Backward(Sizes{.batch = 16, .kernel = 3, .side = 64}).call), 0_B) << "oneDNN";
  EXPECT_EQ(heap_scratch(Backward(Sizes{.input_wanted = false}).call), 0_B);
  Backward other(Sizes{});
  other.call.name = "aten::convolution";
  EXPECT_EQ(heap_scratch(other.call), 0_B);
}

TEST_F(HeapScratchTest, IsChargedForAsLongAsTheOpRuns) {
  Bytes charged;
  HeapScratch scratch([&](HeapScratch::Scratch one, const std::string&) { charged += one.bytes; },
                      [&](HeapScratch::Scratch one) { charged -= one.bytes; });
  Backward outer(Sizes{}), inner(Sizes{.inputs = 8}), none(Sizes{.input_wanted = false});
  scratch.begin(outer.call);
  scratch.begin(none.call);
  scratch.begin(inner.call);
  EXPECT_EQ(charged, Bytes{24 * 32 * 32 * 4});
  scratch.end(inner.call, {}, true);
  scratch.end(none.call, {}, true);
  EXPECT_EQ(charged, Bytes{16 * 32 * 32 * 4});
  scratch.end(outer.call, {}, false);
  EXPECT_EQ(charged, 0_B);
}

TEST_F(HeapScratchTest, WhatIsRefusedIsNotGivenBack) {
  Bytes given_back;
  HeapScratch scratch([](HeapScratch::Scratch, const std::string&) { throw std::runtime_error("no room"); },
                      [&](HeapScratch::Scratch one) { given_back += one.bytes; });
  Backward one(Sizes{});
  EXPECT_THROW(scratch.begin(one.call), std::runtime_error);
  scratch.end(one.call, {}, false);
  EXPECT_EQ(given_back, 0_B);
}

// MKL's buffers grow with the largest product so far, up to a limit for each thread.
TEST_F(HeapScratchTest, OfAProductIsChargedWhereItIsTwiceAsLargeAsAnyBefore) {
  std::vector<Bytes> charged;
  HeapScratch scratch(
      [&](HeapScratch::Scratch one, const std::string&) {
        EXPECT_FALSE(one.every_time);
        charged.push_back(one.bytes);
      },
      [](HeapScratch::Scratch) {});
  const auto multiply = [&](std::int64_t side) {
    const at::Tensor left = at::empty({side, side}), right = at::empty({side, side});
    OpCall call;
    call.name = "aten::mm";
    for (const at::Tensor* one : {&left, &right}) call.inputs.push_back(*storage_use(*one->unsafeGetTensorImpl()));
    scratch.begin(call);
    scratch.end(call, {}, true);
  };
  for (const std::int64_t side : {512, 512, 600, 1024, 2048, 2048}) multiply(side);
  EXPECT_EQ(charged, (std::vector<Bytes>{2_MiB, kProductBuffers, kProductBuffers})) << "of one thread";
}

}  // namespace
}  // namespace ullage::runtime
