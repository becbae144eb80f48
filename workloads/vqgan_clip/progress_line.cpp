// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/progress_line.h"

#include <numeric>

namespace ullage::vqgan_clip {

std::string progress_line(std::int64_t iteration, std::int64_t iterations, std::span<const double> losses,
                          const program::Pace& pace) {
  std::string line = "iteration " + std::to_string(iteration) + "/" + std::to_string(iterations) + "  loss " +
                     program::loss_text(std::accumulate(losses.begin(), losses.end(), 0.0));
  if (losses.size() > 1) {
    const char* before = " (";
    for (const double loss : losses) line += before + program::loss_text(loss), before = " ";
    line += ')';
  }
  return line + to_string(pace);
}

}  // namespace ullage::vqgan_clip
