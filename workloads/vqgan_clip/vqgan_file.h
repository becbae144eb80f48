// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weights of a VQGAN: which keys they have for a config, and where they are in a checkpoint.
//
//   encoder.*                          112 MB at the published size
//   quant_conv, post_quant_conv        between z_channels and the width of codes
//   quantize.embedding.weight          the codebook; of Gumbel's: quantize.embed.weight and quantize.proj.*
//   decoder.*                          194 keys, 42,449,795 figures at the published size

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"
#include "ullage/read/weights/weights_match.h"
#include "vqgan_clip/model_config.h"

#include <memory>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {

// Names as in the VQGAN: "decoder.conv_in.weight".
std::vector<read::WantedWeight> wanted_of_encoder(const ModelConfig& config);
std::vector<read::WantedWeight> wanted_of_decoder(const ModelConfig& config);
std::vector<read::WantedWeight> wanted_of_quantiser(const ModelConfig& config);  // with the two convolutions around it

// Opens the file and checks that it has all of the three, and of these nothing else; a loss and an optimizer may be
// there too. The tensors have the names above: what Lightning ("state_dict.") and a transformer ("first_stage_model.")
// put before them is gone. NotFound; BadFile, with the beginnings of names that it has where there is no VQGAN.
Result<std::shared_ptr<const read::Weights>> open_vqgan(const std::string& path, const ModelConfig& config);

}  // namespace ullage::vqgan_clip
