// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: where a search begins, read from a file, and all that it does, written to one (--start, --dump). Names and
// shapes are those of tests/pulse/dump.py.

#include "pulse/best_faces.h"
#include "pulse/search.h"

#include <map>
#include <string>
#include <vector>

namespace ullage::pulse {

// "latents" and "noise/<i>" of the file, of the shapes that the options ask for.
Result<Start> read_start(const std::string& path, const Options& options, std::int64_t layers, std::int64_t batch);

class Recording final {
 public:
  // After Search::step(): the first step's pictures and gradients, every step's figures and latents.
  void see(const Evaluation& seen, const Search& search, double learning_rate);
  // Adds what the search ended with and writes the file.
  Status write(const std::string& path, const Evaluation& last, const Search& search, const BestFaces& best);

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::vector<at::Tensor>> rows_;  // of "trajectory/..."
};

}  // namespace ullage::pulse
