// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes how one count (bytes of a storage, a size of a tensor) depends on the knobs, the sizes that a person varies.
// A program was run at some values of the knobs; each run is a take. If the counts of all takes lie exactly on a
// polynomial, that is their law, and it gives the count at any other value. There is no tolerance: if one byte is off,
// there is no law. Sizes are affine in a batch. They are quadratic in a side or a length, which needs four values.
//
//   takes          a grid: every value of the first knob with every value of the second
//   along a knob   n values give a polynomial of degree n - 2 at most, because one value is kept as a check
//   two knobs      if no such polynomial fits, a + b x + c y + d xy + e (xy)^2 is tried. Attention on a picture follows
//                  it, because every point is compared with every other. Five takes determine it; all others check it
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
  std::vector<Axis> axes;  // one or two, with at least three values each; four are needed for a quadratic law
  std::size_t takes() const;
  // The values of the axes' knobs. ContractError if `knobs` lacks one.
  std::vector<std::int64_t> values_of(const std::vector<Knob>& knobs) const;
};

// Returns the count at `at`, which has a value for each axis. `counts` has one for each take, by place in the grid.
// Nothing if they follow no law. The same counts may give nothing at one target and a count at another, because the
// result must be a whole number.
std::optional<std::int64_t> evaluate(const Grid& grid, std::span<const std::int64_t> counts,
                                     std::span<const std::int64_t> at);

// Returns counts that follow a law, are not below `counts`, and are above zero. If `counts` follow a law and are all
// above zero, returns them unchanged. Else returns an affine function of the product of the knobs, a line. Takes are
// ordered by that product; the line is as steep as the steepest rise from one to the next.
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
