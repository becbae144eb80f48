// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a layer takes its weights from: the keys of a file below a prefix, as constants of the type computed with.

#include "ullage/read/weights/weights.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>

namespace ullage::torch_program {

class Source final {
 public:
  // `network` is what recordings call it: "synthesis".
  Source(std::shared_ptr<const read::Weights> weights, at::ScalarType type, std::string network)
      : weights_(std::move(weights)), type_(type), network_(std::move(network)) {}

  // Of the layer "blocks.4x4" its part "epi1".
  Source under(const std::string& part) const;

  // The tensor of this layer called `name`, times `factor` in the type of the result. A copy; what was read of the file
  // for it is let go of.
  at::Tensor take(const std::string& name, double factor = 1) const;
  // The same where it lies, in the type of the file: for one of which little is read.
  at::Tensor view(const std::string& name) const;

  at::ScalarType type() const { return type_; }

 private:
  std::shared_ptr<const read::Weights> weights_;
  at::ScalarType type_;
  std::string network_;
  std::string prefix_;  // "blocks.4x4."
};

}  // namespace ullage::torch_program
