// SPDX-License-Identifier: Apache-2.0
#pragma once

// Estimates how fast memory outside the pool grows from step to step, and how many steps are left at that rate. So a
// leak outside the pool (a list of numpy arrays, a growing cache) is reported before it uses up the budget.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"

#include <array>
#include <cstddef>
#include <optional>

namespace ullage::store {

class OutsideGrowth final {
 public:
  // Growth below this per step is noise: thread arenas, code pages touched for the first time.
  static constexpr Bytes kNoise = 64_KiB;
  static constexpr std::size_t kWindow = 16;  // steps looked at

  // `outside`: what the process held outside the pool at the end of `step`. Steps must come in order.
  void add(StepId step, Bytes outside);

  // Returns the growth in bytes per step over the last kWindow steps (least squares). Returns nothing if fewer steps
  // were added so far, or if the growth is below kNoise.
  std::optional<Bytes> per_step() const;

  // Returns after how many steps `room` more bytes are used up at that rate; nothing if per_step() returns nothing.
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
