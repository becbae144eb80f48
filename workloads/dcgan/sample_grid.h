// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the sample picture, and the networks' settings from the options, in the same way for the run and its rehearsal.

#include "dcgan/options.h"
#include "dcgan/pixels.h"
#include "dcgan/trainer.h"

#include <algorithm>
#include <cstdint>

namespace ullage::dcgan {

// The number of samples that a run with this batch shows.
inline std::int64_t samples_of(std::int64_t batch) { return std::min(batch, kMostSamples); }

// Draws all of the trainer's fixed samples. Charges the runtime for the grid's bytes while it is drawn.
Grid sample_grid(Trainer& trainer, const Options& options);

NetworkShape network_shape(const Options& options);
StepSettings step_settings(const Options& options);
AdamSettings adam_settings(const Options& options);

}  // namespace ullage::dcgan
