// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: reads a search's start from a file (--start) and writes all that the search does to one (--dump). Names
// and shapes are those of tests/pulse/dump.py.

#include "pulse/best_faces.h"
#include "pulse/search.h"

#include <map>
#include <string>
#include <vector>

namespace ullage::pulse {

// Reads "latents" and "noise/<i>", which must have the shapes that the options ask for.
Result<Start> read_start(const std::string& path, const Options& options, std::int64_t layers, std::int64_t batch);

class Recording final {
 public:
  // Call it after each Search::step(). Records the first step's pictures and gradients, and every step's losses and
  // latents.
  void see(const Evaluation& seen, const Search& search, double learning_rate);
  // Adds the final state of the search and writes the file.
  Status write(const std::string& path, const Evaluation& last, const Search& search, const BestFaces& best);

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::vector<at::Tensor>> rows_;  // one row a step, for "trajectory/..."
};

}  // namespace ullage::pulse
