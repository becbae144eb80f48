// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/model_config.h"

#include "program/temp_folder.h"

#include <utility>

namespace ullage::vqgan_clip {
namespace {

// Like the published configuration for ImageNet, f16.
const std::string kModel =
    "model:\n"
    "  base_learning_rate: 4.5e-6\n"
    "  target: taming.models.vqgan.VQModel\n"
    "  params:\n"
    "    embed_dim: 256\n"
    "    n_embed: 16384\n"
    "    ddconfig:\n"
    "      double_z: False\n"
    "      z_channels: 256\n"
    "      resolution: 256\n"
    "      in_channels: 3\n"
    "      out_ch: 3\n"
    "      ch: 128\n"
    "      ch_mult: [ 1,1,2,2,4]  # num_down = len(ch_mult)-1\n"
    "      num_res_blocks: 2\n"
    "      attn_resolutions: [16]\n"
    "      dropout: 0.0\n"
    "    lossconfig:\n"
    "      target: taming.modules.losses.vqperceptual.VQLPIPSWithDiscriminator\n"
    "data:\n"
    "  params: {batch_size: 5}\n";

std::string with(std::string from, const std::string& to, std::string text = kModel) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string refused(const std::string& yaml) {
  const auto config = parse_model_config(yaml, "v.yaml");
  EXPECT_FALSE(config) << yaml;
  return config ? "" : config.error().text();
}

TEST(ModelConfig, IsRead) {
  const auto config = parse_model_config(kModel, "v.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->quantiser, Quantiser::Nearest);
  EXPECT_FALSE(config->is_first_stage);
  EXPECT_EQ(config->codes, 16384);
  EXPECT_EQ(config->code_width, 256);
  EXPECT_EQ(config->z_channels, 256);
  EXPECT_EQ(config->channels, 128);
  EXPECT_EQ(config->multipliers, (std::vector<std::int64_t>{1, 1, 2, 2, 4}));
  EXPECT_EQ(config->blocks, 2);
  EXPECT_EQ(config->token_side(), 16);
  EXPECT_TRUE(config->has_attention(4));
  EXPECT_FALSE(config->has_attention(3));
}

TEST(ModelConfig, MayBeOfAGumbelQuantiser) {
  const auto config = parse_model_config(
      with("[ 1,1,2,2,4]", "[1, 1, 2, 4]",
           with("VQModel", "GumbelVQ", with("    embed_dim", "    kl_weight: 1.0e-08\n    embed_dim"))),
      "v.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->quantiser, Quantiser::Gumbel);
  EXPECT_EQ(config->token_side(), 8);
}

TEST(ModelConfig, OfATransformerIsItsFirstStage) {
  std::string inner;
  for (std::size_t at = kModel.find("  target"), end = 0; at < kModel.find("data:"); at = end + 1) {
    end = kModel.find('\n', at);
    inner += "    " + kModel.substr(at, end - at + 1);
  }
  const std::string outer =
      "model:\n  target: taming.models.cond_transformer.Net2NetTransformer\n  params:\n"
      "    cond_stage_config: __is_unconditional__\n    first_stage_config:\n";
  const auto config = parse_model_config(outer + inner, "v.yaml");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_TRUE(config->is_first_stage);
  EXPECT_EQ(config->codes, 16384);
  EXPECT_NE(refused(outer + with("vqgan.VQModel", "cond_transformer.Net2NetTransformer", inner))
                .find("v.yaml:6: model.params.first_stage_config.target is taming.models.cond_transformer.Net2Net"),
            std::string::npos);
}

TEST(ModelConfig, OfAnotherModelIsRefusedWithItsLine) {
  const std::pair<std::string, const char*> cases[] = {
      {with("taming.models.vqgan.VQModel", "ldm.models.autoencoder.AutoencoderKL"),
       "v.yaml:3: model.target is ldm.models.autoencoder.AutoencoderKL; taming.models.vqgan.VQModel, "},
      {with("model:", "modell:"), "v.yaml:1: model is missing; give the yaml that came with the VQGAN"},
      {with("    ddconfig:", "    unet_config:"), "v.yaml:5: model.params.ddconfig is missing"},
      {with("double_z: False", "double_z: true"), "v.yaml:8: model.params.ddconfig.double_z is true"},
      {with("      double_z: False\n", ""), "v.yaml:8: model.params.ddconfig.double_z is true (the default"},
      {with("double_z: False", "double_z: maybe"),
       "v.yaml:8: model.params.ddconfig.double_z is neither true nor false"},
      {with("dropout: 0.0", "attn_type: none"),
       "v.yaml:17: model.params.ddconfig has 'attn_type', which a VQGAN does not have"},
      {with("dropout: 0.0", "resamp_with_conv: false"), "v.yaml:17: model.params.ddconfig.resamp_with_conv is false"},
      {with("in_channels: 3", "in_channels: 183"),
       "v.yaml:11: model.params.ddconfig.in_channels is '183', not a whole"},
      {with("embed_dim: 256", "embed_dim: 2.5"),
       "v.yaml:5: model.params.embed_dim is '2.5', not a whole number from 1 to"},
      {with("n_embed: 16384", "n_embed: [1]"),
       "v.yaml:6: model.params.n_embed is not a whole number from 1 to 16777216"},
      {with("blocks: 2", "blocks: 0"),
       "v.yaml:15: model.params.ddconfig.num_res_blocks is '0', not a whole number from 1 to"},
      {with("n_embed: 16384", "n_embed:"), "v.yaml:5: model.params.n_embed is missing"},
      {with("ch: 128", "ch: 100"), "v.yaml:13: model.params.ddconfig.ch is 100; it must be a multiple of 32"},
      {with("ch: 128", "ch: 99999999999999999999"), "v.yaml:13: model.params.ddconfig.ch is '9999999999"},
      {with("resolution: 256", "resolution: 250"),
       "v.yaml:10: model.params.ddconfig.resolution is 250; it must be a multiple of 16"},
      {with("[ 1,1,2,2,4]", "[]"), "v.yaml:14: model.params.ddconfig.ch_mult has 0 numbers; it must have 1 to 12"},
      {with("[ 1,1,2,2,4]", "[1,1,1,1,1,1,1,1,1,1,1,1,1]"), "v.yaml:14: model.params.ddconfig.ch_mult has 13 numbers"},
      {with("[ 1,1,2,2,4]", "[1,[1]]"), "v.yaml:14: model.params.ddconfig.ch_mult is not a whole number"},
      {with("[ 1,1,2,2,4]", "5"), "v.yaml:14: model.params.ddconfig.ch_mult is not a list of numbers"},
  };
  for (const auto& [yaml, said] : cases) {
    const std::string text = refused(yaml);
    EXPECT_TRUE(text.starts_with(said)) << text << "\nwanted " << said;
  }
}

TEST(ModelConfig, ThatIsNoYamlIsRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "v.yaml:1: the file is not a mapping"},
      {"model", "v.yaml:1: the file is not a mapping"},
      {"model: [1]", "v.yaml:1: model is not a mapping"},
      {"model:\n  a: [1,", "v.yaml:2: this is not YAML: "},
      {"a: *b\n", "v.yaml:1: this is not YAML: "},
      {std::string("\x80\x02}q\0", 5), "v.yaml:"},
      {std::string(70'000, ' '), "v.yaml: has 70000 bytes, 65536 are the most"},
      {std::string(60'000, '['), "v.yaml:"},
      {std::string(60'000, '{'), "v.yaml:"},
  };
  for (const auto& [yaml, said] : cases) {
    const std::string text = refused(yaml);
    EXPECT_TRUE(text.starts_with(said)) << text << "\nwanted " << said;
  }
}

// Each alias stands for ten of the one before. Expanding them would give 10^9 nodes.
TEST(ModelConfig, WithABombOfAliasesCostsNothing) {
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ",*a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_TRUE(parse_model_config(bomb + kModel, "v.yaml"));
  EXPECT_TRUE(refused(bomb + with("n_embed: 16384", "n_embed: *a9")).find("n_embed is not a whole number") !=
              std::string::npos);
  EXPECT_NE(refused("model: &m\n  target: taming.models.vqgan.VQModel\n  params: *m\n"), "");
}

TEST(ModelConfig, IsReadFromItsFile) {
  const test::TempFolder folder;
  test::write_file(folder / "v.yaml", kModel);
  EXPECT_TRUE(read_model_config(folder / "v.yaml"));
  const auto missing = read_model_config(folder / "w.yaml");
  EXPECT_EQ(missing.error().kind, Error::Kind::NotFound);
  EXPECT_NE(missing.error().text().find("--config"), std::string::npos) << missing.error().text();
}

}  // namespace
}  // namespace ullage::vqgan_clip
