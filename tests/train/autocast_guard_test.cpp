// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/autocast_guard.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace ullage::train {
namespace {

struct State {
  State()
      : enabled(at::autocast::is_autocast_enabled(at::kCPU)),
        dtype(at::autocast::get_autocast_dtype(at::kCPU)),
        cache(at::autocast::is_autocast_cache_enabled()) {}
  bool operator==(const State&) const = default;
  bool enabled;
  at::ScalarType dtype;
  bool cache;
};

at::ScalarType type_of_product() { return torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type(); }

TEST(AutocastGuard, NestsAndRestores) {
  const State before;
  EXPECT_EQ(type_of_product(), torch::kFloat32);
  {
    const AutocastGuard outer(torch::kCPU);
    EXPECT_EQ(type_of_product(), torch::kBFloat16);
    {
      const AutocastGuard off(torch::kCPU, std::nullopt, /*enabled=*/false);
      EXPECT_EQ(type_of_product(), torch::kFloat32);
      const AutocastGuard inner(torch::kCPU, torch::kHalf, true, /*cache_enabled=*/false);
      EXPECT_EQ(type_of_product(), torch::kHalf);
      EXPECT_FALSE(at::autocast::is_autocast_cache_enabled());
    }
    EXPECT_EQ(type_of_product(), torch::kBFloat16);
    EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  }
  EXPECT_TRUE(State() == before);
}

TEST(AutocastGuard, RestoresAfterAnException) {
  const State before;
  try {
    const AutocastGuard outer(torch::kCPU, torch::kHalf);
    const AutocastGuard inner(torch::kCPU, torch::kBFloat16, true, false);
    torch::mm(torch::ones({2, 3}), torch::ones({2, 3}));
    FAIL() << "the shapes do not match";
  } catch (const c10::Error&) {
  }
  EXPECT_TRUE(State() == before);
  EXPECT_EQ(type_of_product(), torch::kFloat32);
}

TEST(AutocastGuard, DropsTheCastsOfWeightsAtTheOutermostExitAlone) {
  const torch::Tensor weight = torch::ones({2, 2}, torch::requires_grad());
  const torch::Tensor x = torch::ones({2, 2});
  const auto product = [&] { return torch::mm(x, weight)[0][0].item<double>(); };
  const auto write = [&](double value) {
    const torch::NoGradGuard no_grad;
    weight.fill_(value);
  };
  {
    const AutocastGuard outer(torch::kCPU);
    EXPECT_EQ(product(), 2);
    write(3);
    {
      const AutocastGuard inner(torch::kCPU);
      EXPECT_EQ(product(), 2) << "the cast from before the write is cached";
    }
    EXPECT_EQ(product(), 2) << "the end of an inner guard keeps the cache";
  }
  const AutocastGuard again(torch::kCPU);
  EXPECT_EQ(product(), 6);
}

TEST(AutocastGuard, SaysWhichTypesADeviceCan) {
  EXPECT_TRUE(can_autocast(torch::kCPU, torch::kHalf));
  const Status wrong = can_autocast(torch::kCPU, torch::kFloat64);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("Double on cpu; give BFloat16 or Half"), std::string::npos)
      << wrong.error().text();
  EXPECT_THROW(AutocastGuard(torch::kCPU, torch::kFloat64), ContractError);
  EXPECT_NO_THROW(AutocastGuard(torch::kCPU, torch::kFloat64, /*enabled=*/false));
  if (!at::globalContext().hasCUDA()) {
    EXPECT_NE(can_autocast(torch::kCUDA).error().text().find("no CUDA device"), std::string::npos);
  }
  EXPECT_FALSE(can_autocast(torch::kMeta));
  EXPECT_EQ(type_of_product(), torch::kFloat32);
}

}  // namespace
}  // namespace ullage::train
