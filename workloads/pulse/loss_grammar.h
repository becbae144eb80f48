// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses --loss-str: a sum "weight*TERM+weight*TERM...", by default 100*L2+0.05*GEOCROSS.

#include "ullage/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace ullage::pulse {

inline constexpr std::string_view kDefaultLoss = "100*L2+0.05*GEOCROSS";

enum class Term { L2, L1, GeoCross };
std::string_view name_of(Term term);  // "L2", "L1", "GEOCROSS"

struct LossPart {
  double weight = 0;
  Term term = Term::L2;

  friend bool operator==(const LossPart&, const LossPart&) = default;
};

// Returns the parts in the order written. BadArgument names the part that is wrong.
Result<std::vector<LossPart>> parse_loss(const std::string& text);

}  // namespace ullage::pulse
