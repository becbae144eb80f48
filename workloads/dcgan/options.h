// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of ullage-dcgan (docs/cli.md, "run dcgan"), checked before any work begins.

#include "program/answer.h"
#include "program/precision.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace ullage::dcgan {

struct Options {
  std::string data;
  std::string out;
  std::int64_t image_size = 256;
  std::int64_t batch = 64;
  std::int64_t steps = 0;    // in the whole run, including those before a resume; 0: `epochs` decides
  std::int64_t epochs = 25;  // 0: `steps` decides
  std::int64_t nz = 100;
  std::int64_t ngf = 64;
  std::int64_t ndf = 64;
  std::int64_t max_channels = 0;  // 0: no cap
  std::string blocks = "standard";
  std::int64_t micro_batch = 0;  // pictures that go through the networks at a time; 0: the batch
  program::Precision precision = program::Precision::Fp32;
  std::vector<std::string> allow;  // what may differ from a whole batch
  double lr = 2e-4;
  double beta1 = 0.5;
  double beta2 = 0.999;
  std::int64_t seed = 1;
  std::int64_t threads = 0;             // 0: torch's own choice
  std::int64_t sample_every = 100;      // steps; 0: only at the end
  std::int64_t checkpoint_every = 500;  // steps; 0: only at the end
  bool resume = false;
  bool skip_bad = false;
};

// Reads the command line and checks every value that can be checked without touching a file. A rehearsal
// (runtime::rehearsing) needs neither --data nor --out.
std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv, bool rehearsal = false);

// The values that --image-size accepts.
std::vector<std::int64_t> image_sizes();

// Returns, as text, the options that must be the same in a checkpoint and in the run that resumes it. If a checkpoint
// is older than an option, that option's default is taken for it. So the default of an option must not change.
std::map<std::string, std::string> options_that_shape_the_run(const Options& options);

// Returns the options as a JSON object, for run.json. An option that was not given and has no default is null. So is
// `epochs` if `steps` was given.
std::string options_as_json(const Options& options);

}  // namespace ullage::dcgan
