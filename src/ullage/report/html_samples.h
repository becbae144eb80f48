// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which moments of a long history a curve is drawn through, so that no peak and no valley is lost.

#include "ullage/trace/levels.h"
#include "ullage/trace/trace.h"

#include <cstdint>
#include <vector>

namespace ullage::report {

// Ascending moments (see html_timeline.h), the first and the last among them and all of `wanted`. Up to 6,000 events
// give every moment; a longer history is cut into 1,500 equal stretches, of which each gives its ends, its lowest and
// its highest live level and its highest reserved level.
std::vector<std::uint64_t> sample_moments(const trace::Levels& levels, std::vector<std::uint64_t> wanted);

}  // namespace ullage::report
