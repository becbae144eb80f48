// SPDX-License-Identifier: Apache-2.0
#pragma once

// The three files of weights: which keys they have, which of them a file is, and where they are looked for.
//
//   mapping       16 keys   dense{0..7}.{weight,bias}
//   synthesis    100 keys at 1024 pixels, fewer below: blocks.4x4.*, blocks.8x8.*, ..., torgb.{weight,bias}
//   gaussian fit  2 keys    mean, std

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"
#include "ullage/read/weights/weights_match.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ullage::pulse {

inline constexpr std::int64_t kLatent = 512;

enum class Network { Mapping, Synthesis, GaussianFit };

// Of a synthesis network: its side in pixels, a power of two from 16 to 1024, and the channels of its blocks, the 4x4
// one first.
struct SynthesisShape {
  std::int64_t resolution = 0;
  std::vector<std::int64_t> channels;

  // Styles and noises, two of each block; 18 at 1024.
  std::int64_t layers() const { return 2 * static_cast<std::int64_t>(channels.size()); }
};
// Pixels at the side of that layer, and of its noise: 4, 4, 8, 8, ...
constexpr std::int64_t side_of_layer(std::int64_t layer) { return std::int64_t{4} << (layer / 2); }
// As far as the file tells it; BadFile when it has no block of 16 pixels or more.
Result<SynthesisShape> synthesis_shape(const read::Weights& weights);

std::vector<read::WantedWeight> wanted_of_synthesis(const SynthesisShape& shape);
std::vector<read::WantedWeight> wanted_of_mapping();
std::vector<read::WantedWeight> wanted_of_gaussian_fit();

// Opens the file and checks that it is that network, all of it and nothing else, in figures of 16, 32 or 64 bits.
// Shared by the tensors that lie in it. NotFound, BadFile; a file of another of the three is called by its name.
Result<std::shared_ptr<const read::Weights>> open_network(const std::string& path, Network network);

// The path named, or where there is none the first file in `cache` that is called synthesis.pt, synthesis.safetensors
// or
// ..._synthesis.pt (mapping likewise). NotFound, with what to do.
Result<std::string> find_network(const std::string& named, const std::string& cache, Network network);

}  // namespace ullage::pulse
