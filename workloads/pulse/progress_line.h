// SPDX-License-Identifier: Apache-2.0
#pragma once

// The progress line of a search.

#include "program/progress.h"
#include "pulse/loss_grammar.h"

#include <cstdint>
#include <map>
#include <string>

namespace ullage::pulse {

struct SearchState {
  std::string name;       // the first face's
  std::int64_t more = 0;  // further faces in the batch
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::map<Term, double> terms;  // means over the batch, not weighted
  double total = 0;
  program::Pace pace;
};

// "face and 3 more  step 12/100  L2 0.0312  GEOCROSS 3.1139  total 3.2757  1.85 GiB of 2.00 GiB  3 min 20 s left"
std::string progress_line(const SearchState& state);

}  // namespace ullage::pulse
