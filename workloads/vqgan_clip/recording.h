// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: writes all that a search does to a file (--dump). Names and shapes are those of tests/vqgan_clip/dump.py.

#include "vqgan_clip/search.h"

#include <map>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {

class Recording final {
 public:
  // Call it after each Search::step(). Records the first step's picture, vectors and gradient, and every step's losses
  // and z.
  void see(const Evaluation& seen, const Search& search);
  Status write(const std::string& path) const;

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::vector<at::Tensor>> rows_;  // one row a step, for "trajectory/..."
};

}  // namespace ullage::vqgan_clip
