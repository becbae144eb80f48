// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/whole_copy.h"

#include <ATen/ops/_lazy_clone.h>
#include <ATen/ops/_nested_tensor_from_tensor_list.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cstring>

namespace ullage::runtime {
namespace {

// Copies the bytes of a whole copy before the kernel runs, or says so without having copied any.
class Copies final : public OpListener {
 public:
  bool moves_bytes = true;
  bool says_so = true;
  int whole = 0;

  void begin(OpCall& call) override {
    if (!call.whole_copy) return;
    ++whole;
    const auto [into, from, size] = *call.whole_copy;
    const auto pointer = [](Address at) { return reinterpret_cast<void*>(at.value); };
    if (moves_bytes) std::memcpy(pointer(into), pointer(from), size.count);
    call.copied = says_so;
  }
  void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}
};

class WholeCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Interceptor>> made = Interceptor::install({&copies});
    if (!made) GTEST_SKIP() << made.error().text();
    guard = std::move(*made);
    guard->enable();
  }
  // Is this copy a whole one?
  bool is_whole(torch::Tensor into, const torch::Tensor& from) {
    copies.whole = 0;
    into.copy_(from);
    return copies.whole == 1;
  }

  Copies copies;
  std::unique_ptr<Interceptor> guard;
};

TEST_F(WholeCopyTest, TheKernelCopiesNothingAndTheRestIsDone) {
  torch::Tensor into = torch::zeros({3, 5});
  const torch::Tensor from = torch::arange(15, torch::kFloat).reshape({3, 5}).clone();
  const auto version = into._version();
  const torch::Tensor returned = into.copy_(from);
  EXPECT_TRUE(torch::equal(into, from));
  EXPECT_TRUE(returned.is_same(into));
  EXPECT_EQ(into._version(), version + 1);
  copies.moves_bytes = false;
  into.copy_(torch::ones({3, 5}));
  EXPECT_TRUE(torch::equal(into, from)) << "so the bytes came from the listener";
  copies.says_so = false;
  into.copy_(torch::ones({3, 5}));
  EXPECT_TRUE(torch::equal(into, torch::ones({3, 5}))) << "the kernel copies if nobody has";
}

TEST_F(WholeCopyTest, AutogradStillNoticesThatASavedTensorChanged) {
  const torch::Tensor x = torch::ones({4}).requires_grad_();
  torch::Tensor factor = torch::full({4}, 2.0);
  const torch::Tensor y = x * factor;
  factor.copy_(torch::full({4}, 3.0));
  EXPECT_EQ(copies.whole, 1);
  EXPECT_THROW(y.sum().backward(), c10::Error);
}

TEST_F(WholeCopyTest, OnlyACopyOfAllBytesThatNobodyDifferentiatesIsWhole) {
  const auto ones = [] { return torch::ones({4, 6}); };
  EXPECT_TRUE(is_whole(ones(), ones()));
  EXPECT_TRUE(is_whole(ones().t(), ones().t())) << "strides are equal, and the bytes are dense";
  EXPECT_FALSE(is_whole(ones(), torch::ones({6, 4}).t())) << "another order of bytes";
  EXPECT_FALSE(is_whole(ones(), torch::ones({4, 6}, torch::kDouble)));
  EXPECT_FALSE(is_whole(ones(), torch::ones({6}))) << "broadcast";
  EXPECT_FALSE(is_whole(torch::ones({8, 6}).slice(0, 0, 4), ones())) << "not all of its storage";
  EXPECT_FALSE(is_whole(ones(), torch::ones({8, 6}).slice(0, 4, 8)));
  torch::Tensor same = ones();
  EXPECT_FALSE(is_whole(same, same));
  const torch::Tensor complex = torch::ones({4, 6}, torch::kComplexFloat);
  EXPECT_FALSE(is_whole(torch::ones({4, 6}, torch::kComplexFloat), complex.conj()));

  const torch::Tensor nested = torch::_nested_tensor_from_tensor_list({ones(), ones()});
  EXPECT_FALSE(is_whole(nested.clone(), nested));

  const torch::Tensor leaf = ones().requires_grad_();
  EXPECT_FALSE(is_whole(ones(), leaf)) << "autograd notes where the bytes come from";
  {
    const torch::NoGradGuard none;
    EXPECT_TRUE(is_whole(leaf, ones())) << "load_state_dict()";
    EXPECT_TRUE(is_whole(ones(), leaf));
  }
  {
    const c10::impl::IncludeDispatchKeyGuard tracing(c10::DispatchKey::Tracer);
    EXPECT_FALSE(is_whole(ones(), ones())) << "a trace notes the arguments";
  }
  const torch::Tensor origin = torch::zeros({4, 6});
  const torch::Tensor lazy = torch::_lazy_clone(origin);
  EXPECT_FALSE(is_whole(lazy, ones())) << "its bytes are another tensor's too";
  EXPECT_TRUE(torch::equal(origin, torch::zeros({4, 6})));
}

}  // namespace
}  // namespace ullage::runtime
