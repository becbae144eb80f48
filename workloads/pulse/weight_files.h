// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens and checks the files of weights that a run needs, before anything is computed.

#include "pulse/network_files.h"
#include "pulse/options.h"

#include <memory>

namespace ullage::pulse {

struct WeightFiles {
  std::shared_ptr<const read::Weights> synthesis;
  // The fit; or, if its file does not exist, the mapping network to compute it from. The other is null.
  std::shared_ptr<const read::Weights> fit, mapping;
};

// Opens the files that the options name, or that are in the cache folder. NotFound, BadFile.
Result<WeightFiles> open_weight_files(const Options& options);

}  // namespace ullage::pulse
