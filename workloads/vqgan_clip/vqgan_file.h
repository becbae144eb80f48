// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a VQGAN: which keys belong to a config, and where they are in a checkpoint.
//
//   encoder.*                          112 MiB in float32 at the published size
//   quant_conv, post_quant_conv        between z_channels and the width of codes
//   quantize.embedding.weight          the codebook; for Gumbel, quantize.embed.weight and quantize.proj.*
//   decoder.*                          194 keys, 42,449,795 parameters at the published size

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"
#include "ullage/read/weights/weights_match.h"
#include "vqgan_clip/model_config.h"

#include <memory>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {

// The names are those in the VQGAN: "decoder.conv_in.weight".
std::vector<read::WantedWeight> wanted_of_encoder(const ModelConfig& config);
std::vector<read::WantedWeight> wanted_of_decoder(const ModelConfig& config);
std::vector<read::WantedWeight> wanted_of_quantiser(const ModelConfig& config);  // and two convolutions

// Opens the file and checks that it has all keys of the three parts and no others that begin like theirs. Other
// tensors, such as a loss and an optimizer, may be there too. The tensors have the names above, without the prefixes of
// Lightning ("state_dict.") and of a transformer ("first_stage_model."). NotFound; BadFile, which lists how its names
// begin if the file is no VQGAN.
Result<std::shared_ptr<const read::Weights>> open_vqgan(const std::string& path, const ModelConfig& config);

}  // namespace ullage::vqgan_clip
