// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_timeline.h"

#include <algorithm>

namespace ullage::report {
namespace {

constexpr std::uint64_t kAllEvents = 6000;
constexpr std::uint64_t kStretches = 1500;

}  // namespace

std::vector<std::uint64_t> sample_moments(const trace::Levels& levels, std::vector<std::uint64_t> wanted) {
  const std::uint64_t events = levels.live.size();
  std::vector<std::uint64_t> moments = std::move(wanted);
  moments.push_back(0);
  if (events <= kAllEvents) {
    for (std::uint64_t m = 1; m <= events; ++m) moments.push_back(m);
  } else {
    const auto position = [](const std::vector<Bytes>& all, auto found) {
      return static_cast<std::uint64_t>(found - all.begin()) + 1;
    };
    for (std::uint64_t i = 0; i < kStretches; ++i) {
      const auto begin = static_cast<std::ptrdiff_t>(events * i / kStretches);
      const auto end = static_cast<std::ptrdiff_t>(events * (i + 1) / kStretches);
      const auto [low, high] = std::minmax_element(levels.live.begin() + begin, levels.live.begin() + end);
      const auto held = std::max_element(levels.reserved.begin() + begin, levels.reserved.begin() + end);
      moments.insert(moments.end(),
                     {static_cast<std::uint64_t>(begin) + 1, position(levels.live, low), position(levels.live, high),
                      position(levels.reserved, held), static_cast<std::uint64_t>(end)});
    }
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  return moments;
}

}  // namespace ullage::report
