// SPDX-License-Identifier: Apache-2.0
#pragma once

// How one count (bytes of a storage, a size of a tensor) follows the knobs: an exact polynomial through the measured
// counts, or no law. There is no tolerance: if one byte is off, there is no law. Sizes are affine in a batch, and
// quadratic in a side or a length.
//
//   takes          a grid: every value of the first knob with every value of the second
//   along a knob   n values give a polynomial of degree n - 2 at most, so that at least one value only checks
//   two knobs      if no such polynomial fits, a + b x + c y + d xy + e (xy)^2 is tried. It is the law for the sides of
//                  a picture whose points are each compared with each (attention). All takes beyond five only check
//   evaluated      by Lagrange's formula in 128-bit integers; a result that is no whole number is no law

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ullage::predict {

// The values of each knob, ascending. A take's place in the grid counts its values row by row: the last knob changes
// fastest.
struct Grid {
  struct Axis {
    std::string name;
    std::vector<std::int64_t> values;
  };
  std::vector<Axis> axes;  // one or two, with at least three values each
  std::size_t takes() const;
};

// Returns the count at `at`. `counts` has one for each take, by place in the grid. Nothing if they follow no law.
std::optional<std::int64_t> evaluate(const Grid& grid, std::span<const std::int64_t> counts,
                                     std::span<const std::int64_t> at);

// Returns counts that follow a law, are not below `counts`, and are above zero. They are an affine function of the
// product of the knobs, as steep as the steepest rise between neighbours. Counts that follow a law already stay as they
// are.
std::vector<std::int64_t> at_or_above(const Grid& grid, std::span<const std::int64_t> counts);

// As evaluate(), for many counts at one target. Computes only once what depends on the target alone.
class Evaluator final {
 public:
  // ContractError: the grid does not have one or two axes, each with at least three ascending values.
  Evaluator(const Grid& grid, std::span<const std::int64_t> at);
  // Nothing also if an intermediate number may need more than 126 bits, or the result is below 0 or above 2^63 - 1.
  std::optional<std::int64_t> operator()(std::span<const std::int64_t> counts) const;

 private:
  __extension__ typedef __int128 Wide;  // "using" does not take __extension__
  struct Axis {
    std::vector<Wide> check;   // n weights; the weighted sum of counts is 0 if they are on a polynomial of degree n - 2
    std::vector<Wide> weight;  // n - 1 weights; the weighted sum is the value at the target, times `divisor`
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
  bool fits_ = true;  // false: computing the weights took too many bits
};

}  // namespace ullage::predict
