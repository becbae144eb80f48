// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/vqgan_file.h"

#include "program/temp_folder.h"
#include "sparse_weights.h"

#include <algorithm>
#include <set>

namespace ullage::vqgan_clip {
namespace {

using test::WantedWeights;

ModelConfig published() {
  return {.codes = 16384,
          .code_width = 256,
          .z_channels = 256,
          .resolution = 256,
          .in_channels = 3,
          .out_channels = 3,
          .channels = 128,
          .multipliers = {1, 1, 2, 2, 4},
          .blocks = 2,
          .attention_sides = {16}};
}

ModelConfig small_vqgan() {
  return {.codes = 8,
          .code_width = 16,
          .z_channels = 24,
          .resolution = 32,
          .in_channels = 3,
          .out_channels = 3,
          .channels = 32,
          .multipliers = {1, 2},
          .blocks = 1,
          .attention_sides = {16}};
}

WantedWeights all_of(const ModelConfig& config) {
  WantedWeights all = wanted_of_encoder(config);
  for (const auto& part : {wanted_of_decoder(config), wanted_of_quantiser(config)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

bool has(const WantedWeights& wanted, const std::string& name, const std::vector<std::int64_t>& shape) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& one) { return one.name == name && one.shape == shape; });
}

TEST(VqganFile, HasThePublishedKeysAndFigures) {
  const auto decoder = wanted_of_decoder(published());
  EXPECT_EQ(decoder.size(), 194u);
  EXPECT_EQ(test::count_of(decoder), 42'449'795u);
  EXPECT_EQ(test::count_of(wanted_of_encoder(published())), 29'298'176u);
  EXPECT_EQ(test::count_of(wanted_of_quantiser(published())), 4'194'304u + 2 * 65'792);
  EXPECT_TRUE(has(decoder, "decoder.conv_in.weight", {512, 256, 3, 3}));
  EXPECT_TRUE(has(decoder, "decoder.up.4.attn.2.proj_out.weight", {512, 512, 1, 1}));
  EXPECT_TRUE(has(decoder, "decoder.up.3.block.0.nin_shortcut.weight", {256, 512, 1, 1}));
  EXPECT_TRUE(has(decoder, "decoder.up.1.upsample.conv.weight", {128, 128, 3, 3}));
  EXPECT_TRUE(has(decoder, "decoder.conv_out.weight", {3, 128, 3, 3}));
  EXPECT_TRUE(has(wanted_of_encoder(published()), "encoder.down.4.attn.1.norm.weight", {512}));
  std::set<std::string> names;
  for (const auto& one : all_of(published())) names.insert(one.name);
  EXPECT_EQ(names.size(), all_of(published()).size());
}

TEST(VqganFile, OfGumbelHasScoresOfCodes) {
  ModelConfig config = small_vqgan();
  config.quantiser = Quantiser::Gumbel;
  const auto wanted = wanted_of_quantiser(config);
  EXPECT_TRUE(has(wanted, "quantize.embed.weight", {8, 16}));
  EXPECT_TRUE(has(wanted, "quantize.proj.weight", {8, 24, 1, 1}));
  EXPECT_TRUE(has(wanted, "quantize.proj.bias", {8}));
  EXPECT_FALSE(has(wanted, "quantize.embedding.weight", {8, 16}));
}

class VqganFileOpened : public testing::Test {
 protected:
  std::string refused(const WantedWeights& tensors, const std::string& prefix = "", const std::string& dtype = "F16") {
    test::write_sparse(path_, tensors, prefix, dtype);
    const auto opened = open_vqgan(path_, small_vqgan());
    EXPECT_FALSE(opened);
    return opened ? "" : opened.error().text().substr(path_.size());
  }

  const test::TempFolder folder_;
  const std::string path_ = folder_ / "v.ckpt";
};

TEST_F(VqganFileOpened, HasItsOwnNamesUnderEveryPrefix) {
  for (const char* prefix : {"", "state_dict.", "state_dict.first_stage_model.", "first_stage_model."}) {
    WantedWeights tensors = all_of(small_vqgan());
    tensors.push_back({"loss.discriminator.main.0.weight", {4}});
    test::write_sparse(path_, tensors, prefix);
    const auto opened = open_vqgan(path_, small_vqgan());
    ASSERT_TRUE(opened) << prefix << ": " << opened.error().text();
    EXPECT_NE((*opened)->find("decoder.conv_in.weight"), nullptr);
    EXPECT_NE((*opened)->find("quantize.embedding.weight"), nullptr);
  }
}

TEST_F(VqganFileOpened, AtFullSizeIsNotRead) {
  test::write_sparse(path_, all_of(published()), "state_dict.");
  const auto opened = open_vqgan(path_, published());
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_EQ((*opened)->tensors().size(), all_of(published()).size());
}

TEST_F(VqganFileOpened, SaysWhichPrefixesThereAreWhenItsOwnAreNot) {
  WantedWeights tensors = {
      {"model.diffusion.a.weight", {1}}, {"model.b", {1}}, {"cond_stage_model.c", {1}}, {"step", {}}};
  EXPECT_EQ(refused(tensors, "state_dict."),
            ": decoder.conv_in.weight is missing, by itself and under state_dict., state_dict.first_stage_model. and "
            "first_stage_model.; its names begin with state_dict.model. (2), state_dict.cond_stage_model. (1), "
            "state_dict.step (1); give the checkpoint of a VQGAN");
  EXPECT_NE(refused(all_of(small_vqgan()), "vqgan.").find("its names begin with vqgan. ("), std::string::npos);
  EXPECT_NE(refused({}).find("it has no tensors"), std::string::npos);
  EXPECT_NE(refused({{"visual.conv1.weight", {1}}}).find("this is a CLIP; give it with --clip"), std::string::npos);
}

TEST_F(VqganFileOpened, SaysEverythingThatDiffersAtOnce) {
  WantedWeights tensors = all_of(small_vqgan());
  tensors[0].shape = {1};
  tensors[1].name = "encoder.conv_inn.bias";
  const std::string said = refused(tensors, "state_dict.");
  EXPECT_NE(
      said.find("1 are missing: encoder.conv_in.bias; 1 have another shape: encoder.conv_in.weight is [1], wanted "
                "[32, 3, 3, 3]; 1 are extra: encoder.conv_inn.bias"),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("does the yaml of --config belong to it?"), std::string::npos) << said;
}

TEST_F(VqganFileOpened, IsOfFloats) {
  EXPECT_NE(refused(all_of(small_vqgan()), "", "I16").find("encoder.conv_in.weight is of type I16"), std::string::npos);
}

TEST_F(VqganFileOpened, ThatIsNotThereIsSaidSo) {
  EXPECT_EQ(open_vqgan(folder_ / "none", small_vqgan()).error().kind, Error::Kind::NotFound);
}

}  // namespace
}  // namespace ullage::vqgan_clip
