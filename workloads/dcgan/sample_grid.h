// SPDX-License-Identifier: Apache-2.0
#pragma once

// The picture of samples, drawn alike by the run and by its rehearsal.

#include "dcgan/options.h"
#include "dcgan/pixels.h"
#include "dcgan/trainer.h"

#include <algorithm>
#include <cstdint>

namespace ullage::dcgan {

// How many samples a run with that batch shows.
inline std::int64_t samples_of(std::int64_t batch) { return std::min(batch, kMostSamples); }

// All of the trainer's fixed samples. Charges the runtime for the picture while it is made.
Grid sample_grid(Trainer& trainer, const Options& options);

NetworkShape network_shape(const Options& options);
AdamSettings adam_settings(const Options& options);

}  // namespace ullage::dcgan
