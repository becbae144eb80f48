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
    auto opened = open_network(path, network);
    if (!opened) return opened.error();
    file = std::move(*opened);
    return success();
  };
  const auto synthesis = find_network(options.synthesis, options.cache, Network::Synthesis);
  if (!synthesis) return synthesis.error();
  if (Status status = open(*synthesis, Network::Synthesis, files.synthesis); !status) return status.error();

  if (std::filesystem::exists(options.gaussian_fit)) {
    if (Status status = open(options.gaussian_fit, Network::GaussianFit, files.fit); !status) return status.error();
    return files;
  }
  const auto mapping = find_network(options.mapping, options.cache, Network::Mapping);
  if (!mapping) {
    Error error = mapping.error();
    error.message =
        "no --gaussian-fit " + options.gaussian_fit + " and no network to compute it from: " + error.message;
    return error;
  }
  if (Status status = open(*mapping, Network::Mapping, files.mapping); !status) return status.error();
  return files;
}

}  // namespace ullage::pulse
