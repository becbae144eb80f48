// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/op_name.h"

#include "runtime/pooled.h"

namespace ullage::runtime {
namespace {

TEST(OpName, IsNoOpOutsideAnyOp) { EXPECT_EQ(op_on_the_stack(), kOutsideOps); }

std::string refused_op(const std::function<void()>& body) {
  pooled();
  EXPECT_THROW(body(), c10::OutOfMemoryError);
  return test_slot().last_op.get();
}

TEST(OpName, NamesTheOpThatAskedNotTheFactory) {
  EXPECT_EQ(refused_op([] { (void)torch::ones({1}).expand({2000000000}).clone(); }), "aten::clone");
  EXPECT_EQ(refused_op([] { (void)torch::ones({1}).expand({2000000000}).sigmoid(); }), "aten::sigmoid");
}

TEST(OpName, NamesTheFactoryWhereThatIsAllThereIs) {
  EXPECT_EQ(refused_op([] { (void)torch::empty({2000000000}); }), "aten::empty_memory_format");
}

TEST(OpName, IsFoundOnTheThreadsOfTheBackwardPass) {
  const std::string op = refused_op([] {
    const torch::Tensor x = torch::ones({1}, torch::requires_grad());
    // Forward sums an expanded view, which takes little memory. Backward allocates the view's gradient in full.
    const torch::Tensor y = x.expand({1000000000});
    y.sum().backward(torch::Tensor(), /*retain_graph=*/true);
    (y * y).sum().backward();
  });
  EXPECT_NE(op, kOutsideOps);
}

}  // namespace
}  // namespace ullage::runtime
