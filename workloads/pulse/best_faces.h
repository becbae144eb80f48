// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is kept of a search's steps: for each picture of the batch its best face, and how near any came.

#include "pulse/search.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace ullage::pulse {

struct BestFace {
  at::Tensor image;  // (3, R, R), of the least total
  at::Tensor low;    // (3, s, s), D(image)
  double total = std::numeric_limits<double>::infinity();
  double distance = std::numeric_limits<double>::infinity();  // the least L2 of all steps
  std::int64_t step = 0;                                      // of the image, from 0
};

class BestFaces final {
 public:
  // `eps` in the type of the figures: an L2 is never below it as rounded.
  BestFaces(std::int64_t batch, double eps) : faces_(static_cast<std::size_t>(batch)), eps_(eps) {}

  void see(const Evaluation& seen, std::int64_t step);

  BestFace of(std::size_t picture) const;
  // eps was reached in some step.
  bool found(std::size_t picture) const { return faces_[picture].distance <= eps_; }

 private:
  std::vector<BestFace> faces_;  // their pictures are rows of these
  at::Tensor images_, lows_;
  double eps_;
};

}  // namespace ullage::pulse
