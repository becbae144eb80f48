// SPDX-License-Identifier: Apache-2.0
#pragma once

// The three files of weights: which keys they have, how a file is recognised, and where files are searched for.
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

// A synthesis network's resolution, a power of two from 16 to 1024 pixels, and the channels of its blocks, the 4x4
// block first.
struct SynthesisShape {
  std::int64_t resolution = 0;
  std::vector<std::int64_t> channels;

  // The number of styles, and of noises: two per block; 18 at 1024 pixels.
  std::int64_t layers() const { return 2 * static_cast<std::int64_t>(channels.size()); }
};
// Returns the side in pixels of a layer and of its noise: 4, 4, 8, 8, ...
constexpr std::int64_t side_of_layer(std::int64_t layer) { return std::int64_t{4} << (layer / 2); }
// Derives the shape from the blocks in the file. BadFile if it has no block of 16 pixels or more.
Result<SynthesisShape> synthesis_shape(const read::Weights& weights);

std::vector<read::WantedWeight> wanted_of_synthesis(const SynthesisShape& shape);
std::vector<read::WantedWeight> wanted_of_mapping();
std::vector<read::WantedWeight> wanted_of_gaussian_fit();

// Opens the file and checks that it holds exactly that network, in floats of 16, 32 or 64 bits. A tensor that is made
// of the file's bytes in place (train::as_tensor) keeps the file open. NotFound, BadFile; if the file is another of the
// three, the error says which.
Result<std::shared_ptr<const read::Weights>> open_network(const std::string& path, Network network);

// Returns `named`. If that is empty, returns the first file by path in `cache` that has the network's name. For
// synthesis these are synthesis.pt, synthesis.safetensors or ..._synthesis.pt; for mapping, the same with that word.
// NotFound, with advice, if there is none.
Result<std::string> find_network(const std::string& named, const std::string& cache, Network network);

}  // namespace ullage::pulse
