// SPDX-License-Identifier: Apache-2.0
#pragma once

// A name for every place of a take at which storages are born, short enough for a table of who holds the bytes.
//
//   parameters, gradients, optimizer state, buffers   the part of the model, "netG"; where no names were told,
//                                                      "parameters", "gradients", ...
//   what a backward pass makes                         "aten::convolution_backward ConvolutionBackward0"
//   everything else                                    "aten::convolution netG.main.6"; of an op that uses no parameter
//                                                      "aten::relu after netG.main.6"; where no names were told,
//                                                      "aten::convolution parameter 3 [512, 256, 4, 4]"

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/take/take_index.h"
#include "ullage/trace/take/take_phases.h"

#include <string>
#include <vector>

namespace ullage::trace {

struct TakeNames {
  struct Name {
    std::string op;     // or the part of the model
    std::string place;  // layer or node; may be empty
  };
  // Index into `names`. Of ops by OpId, of storages by StorageId.
  std::vector<std::uint32_t> ops;
  std::vector<std::uint32_t> storages;
  std::vector<Name> names;
};
TakeNames take_names(const TakeIndex& index, const TakePhases& phases, const std::vector<Category>& categories);

}  // namespace ullage::trace
