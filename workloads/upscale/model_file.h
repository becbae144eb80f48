// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file of an RRDB network (ESRGAN, arXiv 1809.00219; Real-ESRGAN, arXiv 2107.10833): which keys it has, and what
// its shapes say. Three ways to name the same layers are published:
//
//   conv_first  body.N.rdb1.conv1           conv_body   conv_up1   conv_up2  conv_hr  conv_last    Real-ESRGAN
//   conv_first  RRDB_trunk.N.RDB1.conv1     trunk_conv  upconv1    upconv2   HRconv   conv_last    ESRGAN
//   model.0     model.1.sub.N.RDB1.conv1.0  model.1.sub.B  model.3  model.6   model.8  model.10     ESRGAN, old
//
// All of them stand below params_ema., below params., as they are, or below state_dict.; the first of these that has
// the layers counts. An old file of x2 has one layer less.

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"
#include "ullage/read/weights/weights_match.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ullage::upscale {

struct NetworkShape {
  std::int64_t fold = 1;       // squares of fold x fold pixels become channels of one: 2 in Real-ESRGAN's x2
  std::int64_t doublings = 2;  // of the sides, at the end
  std::int64_t features = 64;  // channels between the blocks
  std::int64_t growth = 32;    // channels that a convolution of a dense block adds
  std::int64_t blocks = 23;    // each of three dense blocks of five convolutions

  std::int64_t scale() const { return (std::int64_t{1} << doublings) / fold; }
  std::int64_t inputs() const { return 3 * fold * fold; }
  // Rows that a row of the last trunk convolution lies behind the newest row it depends on: one for each convolution.
  std::int64_t lag() const { return 15 * blocks + 2; }
};

// The names of the layers in one file, without ".weight" and ".bias".
struct LayerNames {
  std::string first, trunk, high, last;
  std::vector<std::string> up;     // NetworkShape::doublings of them
  std::vector<std::string> dense;  // 15 for each block, in the order in which they are used
};

struct ModelFile {
  std::shared_ptr<const read::Weights> weights;  // names as in LayerNames
  NetworkShape shape;
  LayerNames names;
};

std::vector<read::WantedWeight> wanted_of(const NetworkShape& shape, const LayerNames& names);

// Opens the file and checks that it holds exactly such a network, of x2 or x4. `scale`: the one that it must have; 0:
// either. NotFound; BadFile, which says what the network is if it is another one that is known.
Result<ModelFile> open_model(const std::string& path, std::int64_t scale);

}  // namespace ullage::upscale
