// SPDX-License-Identifier: Apache-2.0
#pragma once

// How one count (bytes of a storage, elements of a tensor) follows the knobs: an exact polynomial through what was
// measured, or none. No tolerances: one byte off is none. Sizes are affine in a batch, quadratic in a side or a length.
//
//   takes          a grid: every value of the first knob with every value of the second
//   along a knob   n values determine a degree of at most n - 2, so that one value at least only checks
//   two knobs      where that is no law, a + b x + c y + d xy + e (xy)^2 is one: of two sides of a picture whose points
//                  are each held against each (attention). The takes beyond five only check
//   evaluated      by Lagrange's formula in 128-bit integers; a result that is no whole number is none

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ullage::predict {

// The values of each knob in ascending order; index of a take in the grid: that of its values, the last knob fastest.
struct Grid {
  struct Axis {
    std::string name;
    std::vector<std::int64_t> values;
  };
  std::vector<Axis> axes;  // one or two; at least three values each (the most degree is values - 2)
  std::size_t takes() const;
};

// One measured count for each take of the grid, in its order. None where they are on no polynomial that is allowed.
std::optional<std::int64_t> evaluate(const Grid& grid, std::span<const std::int64_t> counts,
                                     std::span<const std::int64_t> at);

// The same for many counts at one target: what depends on the target alone is worked out once.
class Evaluator final {
 public:
  // ContractError: the grid has no axis or more than two, or an axis whose values are fewer than three or not
  // ascending.
  Evaluator(const Grid& grid, std::span<const std::int64_t> at);
  // None also where a number on the way passes 128 bits, and of a result below zero or above 2^63 - 1.
  std::optional<std::int64_t> operator()(std::span<const std::int64_t> counts) const;

 private:
  __extension__ typedef __int128 Wide;  // "using" would be no place for __extension__
  struct Axis {
    std::vector<Wide> check;   // n weights: counts on a polynomial of degree n - 2 add up to zero with them
    std::vector<Wide> weight;  // n - 1: the value at the target, times `divisor`
    Wide divisor = 1;
  };
  static Axis weights(const std::vector<std::int64_t>& values, std::int64_t at, bool& fits);
  std::optional<Wide> along_first(std::span<const Wide> lines, std::size_t stride) const;
  std::optional<std::int64_t> by_degrees(std::span<const Wide> counts) const;
  Wide bilinear(std::span<const Wide> counts, Wide x, Wide y, bool& fits) const;
  std::optional<std::int64_t> by_squared_product(std::span<const Wide> counts) const;

  std::size_t takes_;
  std::vector<Axis> axes_;
  std::vector<std::vector<std::int64_t>> values_;  // of each axis
  std::vector<std::int64_t> at_;
  bool fits_ = true;  // the weights pass no 128 bits
};

}  // namespace ullage::predict
