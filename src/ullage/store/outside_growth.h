// SPDX-License-Identifier: Apache-2.0
#pragma once

// How fast the memory outside the pool grows with the steps, and how many steps are left at that rate. A program that
// leaks outside (a list of numpy arrays, a growing cache) is told so before it hits its budget.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"

#include <array>
#include <cstddef>
#include <optional>

namespace ullage::store {

class OutsideGrowth final {
 public:
  // Below this a step, growth is noise: thread arenas, code pages touched for the first time.
  static constexpr Bytes kNoise = 64_KiB;
  static constexpr std::size_t kWindow = 16;  // steps looked at

  // What the process held outside the pool at the end of a step; steps come in order.
  void add(StepId step, Bytes outside);

  // Bytes a step over the last kWindow steps (least squares); nothing while there are fewer steps, or within noise.
  std::optional<Bytes> per_step() const;

  // Steps until `room` more bytes are used up at that rate.
  std::optional<std::uint64_t> steps_left(Bytes room) const;

 private:
  struct Look {
    StepId step;
    Bytes outside;
  };
  std::array<Look, kWindow> looks_{};  // ring
  std::size_t count_ = 0;
};

}  // namespace ullage::store
