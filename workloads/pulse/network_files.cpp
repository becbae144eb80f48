// SPDX-License-Identifier: Apache-2.0
#include "pulse/network_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace ullage::pulse {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLeastResolution = 16;
constexpr std::int64_t kLargestResolution = 1024;

// The name in messages and options.
std::string_view name_of(Network network) {
  switch (network) {
    case Network::Mapping:
      return "mapping";
    case Network::Synthesis:
      return "synthesis";
    case Network::GaussianFit:
      return "gaussian-fit";
  }
  contract_broken("unknown Network", __FILE__, __LINE__);
}

std::string block_name(std::int64_t side) {
  const std::string text = std::to_string(side);
  return "blocks." + text + "x" + text;
}

// Recognises a file by a key that only its network has.
std::optional<Network> told_by_keys(const read::Weights& weights) {
  if (weights.find("dense0.weight") != nullptr) return Network::Mapping;
  if (weights.find("torgb.weight") != nullptr) return Network::Synthesis;
  if (weights.find("mean") != nullptr && weights.find("std") != nullptr) return Network::GaussianFit;
  return std::nullopt;
}

using Wanted = std::vector<read::WantedWeight>;

void want_convolution(Wanted& wanted, const std::string& name, std::int64_t from, std::int64_t to, std::int64_t size) {
  wanted.push_back({name + ".weight", {to, from, size, size}});
  wanted.push_back({name + ".bias", {to}});
}

void want_epilogue(Wanted& wanted, const std::string& name, std::int64_t channels) {
  wanted.push_back({name + ".noise.weight", {channels}});
  wanted.push_back({name + ".style_mod.lin.weight", {2 * channels, kLatent}});
  wanted.push_back({name + ".style_mod.lin.bias", {2 * channels}});
}

void want_first_block(Wanted& wanted, std::int64_t channels) {
  const std::string name = block_name(4);
  wanted.push_back({name + ".const", {1, channels, 4, 4}});
  wanted.push_back({name + ".bias", {channels}});
  want_epilogue(wanted, name + ".epi1", channels);
  want_convolution(wanted, name + ".conv", channels, channels, 3);
  want_epilogue(wanted, name + ".epi2", channels);
}

void want_block(Wanted& wanted, std::int64_t side, std::int64_t from, std::int64_t channels) {
  const std::string name = block_name(side);
  want_convolution(wanted, name + ".conv0_up", from, channels, 3);
  wanted.push_back({name + ".conv0_up.intermediate.kernel", {1, 1, 3, 3}});
  want_epilogue(wanted, name + ".epi1", channels);
  want_convolution(wanted, name + ".conv1", channels, channels, 3);
  want_epilogue(wanted, name + ".epi2", channels);
}

Result<Wanted> wanted_of(const read::Weights& weights, Network network) {
  if (network == Network::Mapping) return wanted_of_mapping();
  if (network == Network::GaussianFit) return wanted_of_gaussian_fit();
  ULLAGE_TRY_VALUE(const auto shape, synthesis_shape(weights));
  return wanted_of_synthesis(shape);
}

}  // namespace

Result<SynthesisShape> synthesis_shape(const read::Weights& weights) {
  SynthesisShape shape;
  for (std::int64_t side = 4; side <= kLargestResolution; side *= 2) {
    const auto* bias = weights.find(block_name(side) + (side == 4 ? ".bias" : ".conv1.bias"));
    if (bias == nullptr || bias->shape.size() != 1) break;
    shape.resolution = side;
    shape.channels.push_back(bias->shape[0]);
  }
  if (shape.resolution < kLeastResolution) {
    return Error{Error::Kind::BadFile,
                 "has blocks up to " + std::to_string(shape.resolution) +
                     " pixels, but a synthesis network has at least 16: this is no synthesis " +
                     "network; give the file of it with --synthesis",
                 weights.file()};
  }
  return shape;
}

Wanted wanted_of_synthesis(const SynthesisShape& shape) {
  Wanted wanted;
  want_first_block(wanted, shape.channels.front());
  for (std::size_t i = 1; i < shape.channels.size(); ++i) {
    want_block(wanted, std::int64_t{4} << i, shape.channels[i - 1], shape.channels[i]);
  }
  want_convolution(wanted, "torgb", shape.channels.back(), 3, 1);
  return wanted;
}

Wanted wanted_of_mapping() {
  Wanted wanted;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "dense" + std::to_string(i);
    wanted.push_back({name + ".weight", {kLatent, kLatent}});
    wanted.push_back({name + ".bias", {kLatent}});
  }
  return wanted;
}

Wanted wanted_of_gaussian_fit() { return {{"mean", {kLatent}}, {"std", {kLatent}}}; }

Result<std::shared_ptr<const read::Weights>> open_network(const std::string& path, Network network) {
  ULLAGE_TRY_VALUE(auto opened, read::Weights::open(path));
  const auto weights = std::make_shared<const read::Weights>(std::move(opened));
  const auto bad = [&](const std::string& what) { return Error{Error::Kind::BadFile, what, path}; };
  if (const auto told = told_by_keys(*weights); told && *told != network) {
    return bad("these are the weights of --" + std::string(name_of(*told)) + ", given as --" +
               std::string(name_of(network)) + "; are the two swapped?");
  }
  ULLAGE_TRY_VALUE(const auto wanted, wanted_of(*weights, network));
  ULLAGE_TRY(read::match(*weights, wanted));
  ULLAGE_TRY(read::match_floats(*weights, wanted));
  return weights;
}

Result<std::string> find_network(const std::string& named, const std::string& cache, Network network) {
  if (!named.empty()) return named;
  const std::string name(name_of(network));
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    const std::string file = entry.path().filename().string();
    if (file == name + ".pt" || file == name + ".safetensors" || file.ends_with("_" + name + ".pt")) {
      found.push_back(entry.path().string());
    }
  }
  if (!found.empty()) return *std::min_element(found.begin(), found.end());
  return Error{Error::Kind::NotFound,
               "no " + name + ".pt in it; name the file with --" + name + ", or its folder with " +
                   "--cache-dir (tools/make_weights makes random ones to try)",
               cache};
}

}  // namespace ullage::pulse
