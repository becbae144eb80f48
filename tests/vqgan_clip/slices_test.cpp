// SPDX-License-Identifier: Apache-2.0
// Some computations can be done in slices to save memory. The results are compared with those without slices.
#include "torch_program/tensor_file.h"
#include "vqgan_clip/vqgan.h"
#include "vqgan_clip/vqgan_file.h"

#include <ATen/Context.h>
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

// Tokens of 2 x 2 pixels, attention at both levels.
ModelConfig small_config() {
  return {.codes = 40,
          .code_width = 32,
          .z_channels = 32,
          .resolution = 16,
          .in_channels = 3,
          .out_channels = 3,
          .channels = 32,
          .multipliers = {1, 2},
          .blocks = 1,
          .attention_sides = {8}};
}

std::shared_ptr<const read::Weights> random_weights(const ModelConfig& config, const std::string& path) {
  at::manual_seed(0);
  std::map<std::string, Tensor> tensors;
  for (const auto& part : {wanted_of_decoder(config), wanted_of_encoder(config), wanted_of_quantiser(config)}) {
    for (const read::WantedWeight& one : part) {
      tensors[one.name] = at::randn(one.shape, at::kDouble) / std::sqrt(static_cast<double>(one.shape.back() * 9));
    }
  }
  EXPECT_TRUE(torch_program::write_tensors(path, tensors));
  auto weights = read::Weights::open(path);
  EXPECT_TRUE(weights);
  return std::make_shared<const read::Weights>(std::move(*weights));
}

class SlicesTest : public ::testing::Test {
 protected:
  ~SlicesTest() override { std::remove(path_.c_str()); }

  struct Painted {
    Tensor picture, gradient;
  };
  Painted paint(const Slices& slices) const {
    const Decoder decoder(config_, source_, slices);
    const Tensor z = z_.clone().requires_grad_(true);
    const Tensor picture = decoder(z);
    (picture * seen_).sum().backward();
    return {picture.detach(), z.grad()};
  }

  const std::string path_ = ::testing::TempDir() + "slices_test.safetensors";
  const ModelConfig config_ = small_config();
  const torch_program::Source source_{random_weights(config_, path_), at::kDouble, "vqgan"};
  const Tensor z_ = at::randn({1, 32, 6, 7}, at::kDouble);
  const Tensor seen_ = at::randn({1, 3, 12, 14}, at::kDouble);
};

TEST_F(SlicesTest, OfCodesAndAttentionChangeNothingButRounding) {
  const Painted whole = paint({});
  for (const Slices& slices : {Slices{.codes = 5}, Slices{.attention = 5}, Slices{.codes = 42, .attention = 41}}) {
    const Painted parts = paint(slices);
    EXPECT_LT((parts.picture - whole.picture).abs().max().item<double>(), 1e-12);
    const double largest = whole.gradient.abs().max().item<double>();
    EXPECT_GT(largest, 0);
    EXPECT_LT((parts.gradient - whole.gradient).abs().max().item<double>(), 1e-12 * largest);
  }
}

TEST_F(SlicesTest, FindTheSameCodes) {
  const Tensor codebook = at::randn({40, 32}, at::kDouble);
  const Tensor whole = nearest(z_, codebook);
  EXPECT_EQ(whole.sizes(), (std::vector<std::int64_t>{1, 6, 7}));
  for (const std::int64_t rows : {1, 5, 42, 100}) EXPECT_TRUE(nearest(z_, codebook, rows).equal(whole)) << rows;
  const Tensor of_one = codebook.narrow(0, 7, 1).view({1, 32, 1, 1});
  EXPECT_EQ(nearest(of_one, codebook).item<std::int64_t>(), 7);
}

TEST_F(SlicesTest, OfAPictureToEncode) {
  const Tensor codebook = source_.take("quantize.embedding.weight"), picture = at::rand({1, 3, 12, 14}, at::kDouble);
  const Tensor whole = Encoder(config_, source_)(picture, codebook);
  EXPECT_EQ(whole.sizes(), (std::vector<std::int64_t>{1, 32, 6, 7}));
  EXPECT_TRUE(Encoder(config_, source_, {.codes = 5, .attention = 5})(picture, codebook).equal(whole));
}

}  // namespace
}  // namespace ullage::vqgan_clip
