// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/vqgan_file.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ullage::vqgan_clip {
namespace {

using Wanted = std::vector<read::WantedWeight>;

constexpr std::string_view kMark = "decoder.conv_in.weight";  // every VQGAN has it
constexpr std::array<std::string_view, 4> kPrefixes = {"", "state_dict.", "state_dict.first_stage_model.",
                                                       "first_stage_model."};
constexpr std::array<std::string_view, 5> kNetworks = {"encoder.", "decoder.", "quantize.", "quant_conv.",
                                                       "post_quant_conv."};

void want_convolution(Wanted& wanted, const std::string& name, std::int64_t from, std::int64_t to, std::int64_t size) {
  wanted.push_back({name + ".weight", {to, from, size, size}});
  wanted.push_back({name + ".bias", {to}});
}

void want_vqgan_norm(Wanted& wanted, const std::string& name, std::int64_t channels) {
  wanted.push_back({name + ".weight", {channels}});
  wanted.push_back({name + ".bias", {channels}});
}

void want_residual(Wanted& wanted, const std::string& name, std::int64_t from, std::int64_t to) {
  want_vqgan_norm(wanted, name + ".norm1", from);
  want_convolution(wanted, name + ".conv1", from, to, 3);
  want_vqgan_norm(wanted, name + ".norm2", to);
  want_convolution(wanted, name + ".conv2", to, to, 3);
  if (from != to) want_convolution(wanted, name + ".nin_shortcut", from, to, 1);
}

void want_attention(Wanted& wanted, const std::string& name, std::int64_t channels) {
  want_vqgan_norm(wanted, name + ".norm", channels);
  for (const char* part : {".q", ".k", ".v", ".proj_out"}) want_convolution(wanted, name + part, channels, channels, 1);
}

void want_middle(Wanted& wanted, const std::string& name, std::int64_t channels) {
  want_residual(wanted, name + ".mid.block_1", channels, channels);
  want_attention(wanted, name + ".mid.attn_1", channels);
  want_residual(wanted, name + ".mid.block_2", channels, channels);
}

// The blocks of one level: `from` channels before the first, `to` channels after each.
void want_level(Wanted& wanted, const std::string& name, std::int64_t blocks, std::int64_t from, std::int64_t to,
                bool has_attention) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    want_residual(wanted, name + ".block." + std::to_string(i), i == 0 ? from : to, to);
    if (has_attention) want_attention(wanted, name + ".attn." + std::to_string(i), to);
  }
}

std::int64_t channels_of(const ModelConfig& config, std::int64_t level) {
  return config.channels * config.multipliers[static_cast<std::size_t>(level)];
}

bool may_be_extra_in_vqgan(std::string_view name) {
  return std::none_of(kNetworks.begin(), kNetworks.end(),
                      [&](std::string_view network) { return name.starts_with(network); });
}

}  // namespace

Wanted wanted_of_encoder(const ModelConfig& config) {
  Wanted wanted;
  std::int64_t channels = config.channels;
  want_convolution(wanted, "encoder.conv_in", config.in_channels, channels, 3);
  for (std::int64_t level = 0; level < config.levels(); ++level) {
    const std::string name = "encoder.down." + std::to_string(level);
    want_level(wanted, name, config.blocks, channels, channels_of(config, level), config.has_attention(level));
    channels = channels_of(config, level);
    if (level + 1 < config.levels()) want_convolution(wanted, name + ".downsample.conv", channels, channels, 3);
  }
  want_middle(wanted, "encoder", channels);
  want_vqgan_norm(wanted, "encoder.norm_out", channels);
  want_convolution(wanted, "encoder.conv_out", channels, config.z_channels, 3);
  return wanted;
}

Wanted wanted_of_decoder(const ModelConfig& config) {
  Wanted wanted;
  std::int64_t channels = channels_of(config, config.levels() - 1);
  want_convolution(wanted, "decoder.conv_in", config.z_channels, channels, 3);
  want_middle(wanted, "decoder", channels);
  for (std::int64_t level = config.levels() - 1; level >= 0; --level) {
    const std::string name = "decoder.up." + std::to_string(level);
    want_level(wanted, name, config.blocks + 1, channels, channels_of(config, level), config.has_attention(level));
    channels = channels_of(config, level);
    if (level > 0) want_convolution(wanted, name + ".upsample.conv", channels, channels, 3);
  }
  want_vqgan_norm(wanted, "decoder.norm_out", channels);
  want_convolution(wanted, "decoder.conv_out", channels, config.out_channels, 3);
  return wanted;
}

Wanted wanted_of_quantiser(const ModelConfig& config) {
  Wanted wanted;
  want_convolution(wanted, "quant_conv", config.z_channels, config.code_width, 1);
  want_convolution(wanted, "post_quant_conv", config.code_width, config.z_channels, 1);
  if (config.quantiser == Quantiser::Nearest) {
    wanted.push_back({"quantize.embedding.weight", {config.codes, config.code_width}});
  } else {
    wanted.push_back({"quantize.embed.weight", {config.codes, config.code_width}});
    want_convolution(wanted, "quantize.proj", config.z_channels, config.codes, 1);
  }
  return wanted;
}

Result<std::shared_ptr<const read::Weights>> open_vqgan(const std::string& path, const ModelConfig& config) {
  ULLAGE_TRY_VALUE(const auto file, read::Weights::open(path));
  const auto* prefix = std::find_if(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view one) {
    return file.find(std::string(one) + std::string(kMark)) != nullptr;
  });
  if (prefix == kPrefixes.end()) {
    const bool is_clip = file.find("visual.conv1.weight") != nullptr;
    return Error{Error::Kind::BadFile,
                 std::string(kMark) + " is missing, by itself and under " + std::string(kPrefixes[1]) + ", " +
                     std::string(kPrefixes[2]) + " and " + std::string(kPrefixes[3]) + "; " +
                     read::beginnings_of(file) +
                     (is_clip ? ": this is a CLIP; give it with --clip" : "; give the checkpoint of a VQGAN"),
                 path};
  }
  auto weights = std::make_shared<const read::Weights>(file.under(*prefix));
  Wanted wanted = wanted_of_encoder(config);
  for (const Wanted& part : {wanted_of_decoder(config), wanted_of_quantiser(config)}) {
    wanted.insert(wanted.end(), part.begin(), part.end());
  }
  if (Status matched = read::match(*weights, wanted, may_be_extra_in_vqgan); !matched) {
    Error error = matched.error();
    error.message += "; does the yaml of --config belong to it?";
    return error;
  }
  ULLAGE_TRY(read::match_floats(*weights, wanted));
  return weights;
}

}  // namespace ullage::vqgan_clip
