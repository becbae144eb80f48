// SPDX-License-Identifier: Apache-2.0
#include "pulse/weight_files.h"

#include <filesystem>
#include <string>
#include <utility>

namespace ullage::pulse {

using File = std::shared_ptr<const read::Weights>;

Result<WeightFiles> open_weight_files(const Options& options) {
  WeightFiles files;
  const auto open = [](const std::string& path, Network network, File& file) -> Status {
    ULLAGE_TRY_VALUE(file, open_network(path, network));
    return success();
  };
  ULLAGE_TRY_VALUE(const auto synthesis, find_network(options.synthesis, options.cache, Network::Synthesis));
  ULLAGE_TRY(open(synthesis, Network::Synthesis, files.synthesis));

  if (std::filesystem::exists(options.gaussian_fit)) {
    ULLAGE_TRY(open(options.gaussian_fit, Network::GaussianFit, files.fit));
    return files;
  }
  const auto mapping = find_network(options.mapping, options.cache, Network::Mapping);
  if (!mapping) {
    Error error = mapping.error();
    error.message =
        "no --gaussian-fit " + options.gaussian_fit + " and no network to compute it from: " + error.message;
    return error;
  }
  ULLAGE_TRY(open(*mapping, Network::Mapping, files.mapping));
  return files;
}

}  // namespace ullage::pulse
