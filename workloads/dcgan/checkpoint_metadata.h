// SPDX-License-Identifier: Apache-2.0
#pragma once

// The facts that a checkpoint records besides tensors, in the file's __metadata__: how far the run is, and which
// options and pictures a run that resumes it must have in common with it.

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

// `pictures` are the paths of the run's pictures in order. Their number and a digest of their names relative to
// options.data are stored.
program::Metadata checkpoint_metadata(const RunPlace& place, const Options& options,
                                      const std::vector<std::string>& pictures);

// Returns nothing if the metadata has no valid place: it was not written by this program.
std::optional<RunPlace> read_place(const program::Metadata& metadata);

// Returns "--ngf is 8 in the checkpoint, 16 here; ...", or "" if all options that shape a run agree.
std::string differing_options(const program::Metadata& metadata, const Options& options);

// Says how the pictures differ, or returns "" if their number and names agree.
std::string differing_pictures(const program::Metadata& metadata, const Options& options,
                               const std::vector<std::string>& pictures);

}  // namespace ullage::dcgan
