// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives a layer its weights: the tensors of a file whose keys begin with a prefix, as constants of the type to compute
// with.

#include "ullage/read/weights/weights.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>

namespace ullage::torch_program {

class Source final {
 public:
  // `network` is the network's name in recordings: "synthesis".
  Source(std::shared_ptr<const read::Weights> weights, at::ScalarType type, std::string network)
      : weights_(std::move(weights)), type_(type), network_(std::move(network)) {}

  // Returns the source for a part of this layer, such as "epi1" of "blocks.4x4".
  Source under(const std::string& part) const;

  // Returns a copy of this layer's tensor `name`, times `factor`, in type(). Lets go of the pages of the file that it
  // read. `format`: where its elements lie in memory.
  at::Tensor take(const std::string& name, double factor = 1,
                  at::MemoryFormat format = at::MemoryFormat::Contiguous) const;
  // Returns the tensor in place, in the file's type. Use it for a tensor from which little is read.
  at::Tensor view(const std::string& name) const;

  at::ScalarType type() const { return type_; }

 private:
  std::shared_ptr<const read::Weights> weights_;
  at::ScalarType type_;
  std::string network_;
  std::string prefix_;  // "blocks.4x4."
};

}  // namespace ullage::torch_program
