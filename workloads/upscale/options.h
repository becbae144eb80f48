// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of ullage-upscale, checked before any work begins.

#include "program/answer.h"

#include <cstdint>
#include <string>
#include <variant>

namespace ullage::upscale {

struct Options {
  std::string input;  // a picture, or a folder of them
  std::string model;
  std::string out;           // a file; for a folder of pictures a folder
  std::int64_t scale = 0;    // that the model must have; 0: whatever it has
  std::int64_t tile = 0;     // rows of a tile; 0: chosen from the bytes stated (tile.h)
  std::int64_t threads = 0;  // 0: torch's own choice
  bool force = false;        // replace what is there
  bool quiet = false;
  // For tests.
  bool in_double = false;
  std::string dump;
};

// `rehearsal`: --input and --out may be missing.
std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv, bool rehearsal = false);

}  // namespace ullage::upscale
