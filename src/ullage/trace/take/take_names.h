// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names every place of a take at which storages are born, short enough for a table of who holds the bytes.
//
//   parameters, gradients, optimizer state, buffers   the part of the model, "netG"; "parameters", "gradients", ... if
//                                                     that is unknown
//   made in a backward pass                           "aten::convolution_backward ConvolutionBackward0"
//   made in a forward pass or an evaluation           "aten::convolution netG.main.6", or
//                                                     "aten::convolution parameter 3 [512, 256, 4, 4]" without names
//     by an op that uses no parameter                 "aten::relu after netG.main.6"
//   made by any other op                              "aten::add"
//   made outside any op                               "outside any op"

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/take/take_index.h"
#include "ullage/trace/take/take_phases.h"

#include <string>
#include <vector>

namespace ullage::trace {

struct TakeNames {
  struct Name {
    std::string op;     // the op, or the part of the model
    std::string place;  // the layer or graph node; may be empty
  };
  // Indices into `names`, for ops by OpId and for storages by StorageId.
  std::vector<std::uint32_t> ops;
  std::vector<std::uint32_t> storages;
  std::vector<Name> names;
};
TakeNames take_names(const TakeIndex& index, const TakePhases& phases, const std::vector<Category>& categories);

}  // namespace ullage::trace
