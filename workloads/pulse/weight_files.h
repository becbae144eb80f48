// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of weights that one run needs, opened and checked before anything is computed.

#include "pulse/network_files.h"
#include "pulse/options.h"

#include <memory>

namespace ullage::pulse {

struct WeightFiles {
  std::shared_ptr<const read::Weights> synthesis;
  // The fit, or where its file is not there the mapping network that it is to be computed from; the other is null.
  std::shared_ptr<const read::Weights> fit, mapping;
};

// Those that the options name, or have in their cache folder. NotFound, BadFile.
Result<WeightFiles> open_weight_files(const Options& options);

}  // namespace ullage::pulse
