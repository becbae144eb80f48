// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/outside_growth.h"

namespace ullage::store {

void OutsideGrowth::add(StepId step, Bytes outside) { looks_[count_++ % kWindow] = {step, outside}; }

std::optional<Bytes> OutsideGrowth::per_step() const {
  if (count_ < kWindow) return std::nullopt;
  double mean_step = 0;
  double mean_bytes = 0;
  for (const Look& look : looks_) {
    mean_step += static_cast<double>(look.step.value) / kWindow;
    mean_bytes += static_cast<double>(look.outside.count) / kWindow;
  }
  double covariance = 0;
  double variance = 0;
  for (const Look& look : looks_) {
    const double step = static_cast<double>(look.step.value) - mean_step;
    covariance += step * (static_cast<double>(look.outside.count) - mean_bytes);
    variance += step * step;
  }
  const double slope = variance > 0 ? covariance / variance : 0;
  if (slope < static_cast<double>(kNoise.count)) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(slope)};
}

std::optional<std::uint64_t> OutsideGrowth::steps_left(Bytes room) const {
  const std::optional<Bytes> rate = per_step();
  if (!rate) return std::nullopt;
  return room.count / rate->count;
}

}  // namespace ullage::store
