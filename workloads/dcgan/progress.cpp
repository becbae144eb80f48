// SPDX-License-Identifier: Apache-2.0
#include "dcgan/progress.h"

#include <cstdio>

namespace ullage::dcgan {

std::string progress_line(const ProgressState& state) {
  char text[128];
  std::snprintf(text, sizeof text, "step %llu/%llu  D %.4f  G %.4f", static_cast<unsigned long long>(state.step),
                static_cast<unsigned long long>(state.last_step), state.losses.loss_d, state.losses.loss_g);
  return text + to_string(state.pace);
}

}  // namespace ullage::dcgan
