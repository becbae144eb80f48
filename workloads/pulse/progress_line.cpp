// SPDX-License-Identifier: Apache-2.0
#include "pulse/progress_line.h"

namespace ullage::pulse {

std::string progress_line(const SearchState& state) {
  std::string line = state.name;
  if (state.more > 0) line += " and " + std::to_string(state.more) + " more";
  line += "  step " + std::to_string(state.step) + "/" + std::to_string(state.steps);
  for (const auto& [term, value] : state.terms)
    line += "  " + std::string(name_of(term)) + " " + program::loss_text(value);
  return line + "  total " + program::loss_text(state.total) + to_string(state.pace);
}

}  // namespace ullage::pulse
