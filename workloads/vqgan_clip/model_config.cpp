// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/model_config.h"

#include "ullage/read/file/file_content.h"
#include "ullage/read/file/printable.h"
#include "vqgan_clip/yaml_fields.h"

#include <algorithm>

namespace ullage::vqgan_clip {
namespace {

constexpr std::size_t kMostBytes = 65'536;  // published ones have 2 KB
constexpr Bounds kChannels = {1, 65'536};
constexpr Bounds kLevels = {1, 12};
constexpr Bounds kSides = {1, 65'536};
constexpr std::int64_t kGroups = 32;  // the group norms' groups: they must divide the channels of every level

constexpr std::string_view kNearest = "taming.models.vqgan.VQModel";
constexpr std::string_view kGumbel = "taming.models.vqgan.GumbelVQ";
constexpr std::string_view kNet2Net = "taming.models.cond_transformer.Net2NetTransformer";

void read_networks(const YamlFields& ddconfig, ModelConfig& config) {
  ddconfig.only({"double_z", "z_channels", "resolution", "in_channels", "out_ch", "ch", "ch_mult", "num_res_blocks",
                 "attn_resolutions", "dropout", "resamp_with_conv"});
  if (ddconfig.flag("double_z", true))
    ddconfig.bad("double_z", "is true (the default): this is a KL autoencoder, not a VQGAN");
  if (!ddconfig.flag("resamp_with_conv", true)) ddconfig.bad("resamp_with_conv", "is false; it must be true");
  config.z_channels = ddconfig.number("z_channels", kChannels);
  config.resolution = ddconfig.number("resolution", kSides);
  config.in_channels = ddconfig.number("in_channels", {3, 3});
  config.out_channels = ddconfig.number("out_ch", {3, 3});
  config.channels = ddconfig.number("ch", kChannels);
  config.multipliers = ddconfig.numbers("ch_mult", kLevels, {1, 64});
  config.blocks = ddconfig.number("num_res_blocks", {1, 64});
  config.attention_sides = ddconfig.numbers("attn_resolutions", {0, 12}, kSides);
  if (config.channels % kGroups != 0) {
    ddconfig.bad("ch",
                 "is " + std::to_string(config.channels) + "; it must be a multiple of " + std::to_string(kGroups));
  }
  if (config.resolution % config.token_side() != 0) {
    ddconfig.bad("resolution", "is " + std::to_string(config.resolution) + "; it must be a multiple of " +
                                   std::to_string(config.token_side()) + ", because ch_mult has " +
                                   std::to_string(config.levels()) + " levels");
  }
}

// Reads a node "target, params": the network that it names, and its sizes.
ModelConfig read_model(const YamlFields& model, bool is_first_stage) {
  const std::string target = model.text("target");
  const YamlFields params = model.under("params");
  if (target == kNet2Net && !is_first_stage) return read_model(params.under("first_stage_config"), true);
  if (target != kNearest && target != kGumbel) {
    model.bad("target", "is " + read::printable(target, 100) + "; " + std::string(kNearest) + ", " +
                            std::string(kGumbel) + " and " + std::string(kNet2Net) + " (its first stage) work");
  }
  ModelConfig config;
  config.quantiser = target == kGumbel ? Quantiser::Gumbel : Quantiser::Nearest;
  config.is_first_stage = is_first_stage;
  config.codes = params.number("n_embed", {1, 1 << 24});
  config.code_width = params.number("embed_dim", kChannels);
  read_networks(params.under("ddconfig"), config);
  return config;
}

}  // namespace

bool ModelConfig::has_attention(std::int64_t level) const {
  return std::find(attention_sides.begin(), attention_sides.end(), resolution >> level) != attention_sides.end();
}

Result<ModelConfig> parse_model_config(std::string_view yaml, const std::string& name) {
  if (yaml.size() > kMostBytes) {
    return Error{Error::Kind::BadFile,
                 "has " + std::to_string(yaml.size()) + " bytes, " + std::to_string(kMostBytes) +
                     " are the most for a yaml of sizes; are --config and --checkpoint swapped?",
                 name};
  }
  // Aliases share the node that they name and are never expanded, so a small file cannot grow.
  try {
    const YamlFields file(YAML::Load(std::string(yaml)), "", name);
    return read_model(file.under("model"), false);
  } catch (const BadYaml& bad) {
    return bad.error;
  } catch (const YAML::Exception& error) {  // also if the parser's limit of depth is exceeded
    return Error{Error::Kind::BadFile, "this is not YAML: " + error.msg,
                 error.mark.is_null() ? name : name + ":" + std::to_string(error.mark.line + 1)};
  }
}

Result<ModelConfig> read_model_config(const std::string& path) {
  const auto content = read::FileContent::open(path, Bytes{kMostBytes});
  if (!content) {
    Error error = content.error();
    error.message += "; give the yaml that came with the VQGAN with --config";
    return error;
  }
  const auto bytes = content->bytes();
  return parse_model_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace ullage::vqgan_clip
