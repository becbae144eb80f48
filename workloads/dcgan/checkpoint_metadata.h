// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a checkpoint says of its run besides tensors, in the file's __metadata__: how far it is, and what the run that
// resumes it must have in common with it.

#include "dcgan/options.h"
#include "dcgan/picture_feed.h"
#include "program/safetensors.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::dcgan {

struct RunPlace {
  std::uint64_t step = 0;  // steps done
  DataPlace data;
};

// `pictures` are the paths of the run's pictures in their order; their names below options.data are remembered as a
// digest.
program::Metadata checkpoint_metadata(const RunPlace& place, const Options& options,
                                      const std::vector<std::string>& pictures);

// Nothing when the metadata are not of this program.
std::optional<RunPlace> read_place(const program::Metadata& metadata);

// "--ngf is 8 in the checkpoint, 16 here; ..."; empty when all options that shape a run agree.
std::string differing_options(const program::Metadata& metadata, const Options& options);

// The same for the pictures; empty when their number and names agree.
std::string differing_pictures(const program::Metadata& metadata, const Options& options,
                               const std::vector<std::string>& pictures);

}  // namespace ullage::dcgan
