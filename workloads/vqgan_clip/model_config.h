// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the yaml that belongs to a VQGAN: which network it is, and its sizes. The file is untrusted: its size and
// values are bounded, and the yaml of another model is refused with line and key.

#include "ullage/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::vqgan_clip {

// Nearest: a code is the nearest row of a codebook (VQModel). Gumbel: it is the row with the largest score (GumbelVQ).
enum class Quantiser { Nearest, Gumbel };

struct ModelConfig {
  Quantiser quantiser = Quantiser::Nearest;
  bool is_first_stage = false;  // in a Net2NetTransformer, whose other networks are unused
  std::int64_t codes = 0;       // n_embed: rows of the codebook
  std::int64_t code_width = 0;  // embed_dim
  // ddconfig
  std::int64_t z_channels = 0;
  std::int64_t resolution = 0;   // trained at; decides which levels have attention; pictures may have any size
  std::int64_t in_channels = 0;  // 3
  std::int64_t out_channels = 0;
  std::int64_t channels = 0;                  // ch: the unit of `multipliers`
  std::vector<std::int64_t> multipliers;      // ch_mult: channels of each level, in units of `channels`
  std::int64_t blocks = 0;                    // num_res_blocks: in a level of the encoder; the decoder has one more
  std::vector<std::int64_t> attention_sides;  // attn_resolutions

  std::int64_t levels() const { return static_cast<std::int64_t>(multipliers.size()); }
  std::int64_t token_side() const { return std::int64_t{1} << (levels() - 1); }  // pixels
  bool has_attention(std::int64_t level) const;
};

// Errors: NotFound, and BadFile with `file:line`.
Result<ModelConfig> read_model_config(const std::string& path);
Result<ModelConfig> parse_model_config(std::string_view yaml, const std::string& name);

}  // namespace ullage::vqgan_clip
