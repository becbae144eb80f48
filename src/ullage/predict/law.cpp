// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/law.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <map>
#include <bit>
#include <optional>

namespace ullage::predict {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;

WideUnsigned magnitude(Wide a) { return a < 0 ? -WideUnsigned(a) : WideUnsigned(a); }

int width(Wide a) {
  const WideUnsigned m = magnitude(a);
  const auto high = std::uint64_t(m >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(std::uint64_t(m));
}

// The product, or zero and `fits` false if it may need more than 126 bits. The compilers' own checked product of 128
// bits calls a function that not every runtime library has.
Wide times(Wide a, Wide b, bool& fits) {
  if (width(a) + width(b) > 126) {
    fits = false;
    return 0;
  }
  return a * b;
}

Wide plus(Wide a, Wide b, bool& fits) {
  if (std::max(width(a), width(b)) > 125) {
    fits = false;
    return 0;
  }
  return a + b;
}

Wide minus(Wide a, Wide b, bool& fits) { return plus(a, -b, fits); }

Wide gcd(Wide a, Wide b) {
  WideUnsigned x = magnitude(a), y = magnitude(b);
  while (y != 0) {
    const WideUnsigned rest = x % y;
    x = y;
    y = rest;
  }
  return Wide(x);
}

Wide weighted(std::span<const Wide> counts, std::span<const Wide> weights, std::size_t stride, bool& fits) {
  Wide sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum = plus(sum, times(counts[i * stride], weights[i], fits), fits);
  return sum;
}

// The quotient; nothing if it is no whole number, below zero or above 2^63 - 1.
std::optional<std::int64_t> whole(Wide value, Wide divisor) {
  if (value % divisor != 0 || value / divisor < 0 || value / divisor > INT64_MAX) return std::nullopt;
  return std::int64_t(value / divisor);
}

// Computes 1 / product of (x_i - x_j) over all j != i, for each i. All are multiplied by their least common
// denominator, which is returned.
Wide barycentric(std::span<const std::int64_t> x, std::vector<Wide>& weights, bool& fits) {
  std::vector<Wide> products;
  Wide common = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Wide product = 1;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (j != i) product = times(product, Wide(x[i]) - x[j], fits);
    }
    if (!fits) return 1;
    products.push_back(product);
    common = times(common, Wide(magnitude(product)) / gcd(common, product), fits);
  }
  for (const Wide product : products) weights.push_back(common / product);
  return common;
}

}  // namespace

std::size_t Grid::takes() const {
  std::size_t count = 1;
  for (const Axis& axis : axes) count *= axis.values.size();
  return count;
}

std::vector<std::int64_t> Grid::values_of(const std::vector<Knob>& knobs) const {
  std::vector<std::int64_t> found;
  for (const Axis& axis : axes) {
    const auto knob = std::ranges::find(knobs, axis.name, &Knob::name);
    ULLAGE_CHECK(knob != knobs.end(), "a value for each knob");
    found.push_back(knob->value);
  }
  return found;
}

Evaluator::Axis Evaluator::weights(const std::vector<std::int64_t>& values, std::int64_t at, bool& fits) {
  Axis axis;
  barycentric(values, axis.check, fits);
  // The last value is not needed here: the check has shown that it is on the polynomial of the others.
  const std::span points(values.data(), values.size() - 1);
  axis.divisor = barycentric(points, axis.weight, fits);
  for (std::size_t i = 0; fits && i < points.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (j != i) axis.weight[i] = times(axis.weight[i], Wide(at) - points[j], fits);
    }
  }
  return axis;
}

Evaluator::Evaluator(const Grid& grid, std::span<const std::int64_t> at)
    : takes_(grid.takes()), at_(at.begin(), at.end()) {
  ULLAGE_CHECK(grid.axes.size() == 1 || grid.axes.size() == 2, "a grid of one knob or two");
  ULLAGE_CHECK(at.size() == grid.axes.size(), "a target for each knob");
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::vector<std::int64_t>& values = grid.axes[i].values;
    ULLAGE_CHECK(values.size() >= 3, "three values of each knob");
    ULLAGE_CHECK(std::ranges::adjacent_find(values, std::greater_equal<>()) == values.end(), "ascending values");
    axes_.push_back(weights(values, at[i], fits_));
    values_.push_back(values);
  }
}

// Checks and evaluates along the first axis; the counts are `stride` apart. The result is times the axis's divisor.
std::optional<Evaluator::Wide> Evaluator::along_first(std::span<const Wide> lines, std::size_t stride) const {
  bool fits = true;
  const Axis& axis = axes_.front();
  if (weighted(lines, axis.check, stride, fits) != 0 || !fits) return std::nullopt;
  const Wide value = weighted(lines, axis.weight, stride, fits);
  return fits ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> Evaluator::operator()(std::span<const std::int64_t> counts) const {
  ULLAGE_CHECK(counts.size() == takes_, "a count for each take");
  if (std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end()) {
    return counts[0] < 0 ? std::nullopt : std::optional(counts[0]);
  }
  if (!fits_) return std::nullopt;
  const std::vector<Wide> wide(counts.begin(), counts.end());
  if (const std::optional<std::int64_t> found = by_degrees(wide)) return found;
  return axes_.size() == 2 ? by_squared_product(wide) : std::nullopt;
}

std::optional<std::int64_t> Evaluator::by_degrees(std::span<const Wide> wide) const {
  const std::size_t columns = axes_.size() == 2 ? axes_[1].check.size() : 1;
  bool fits = true;
  for (std::size_t row = 0; columns > 1 && row < axes_[0].check.size(); ++row) {
    const std::span line = wide.subspan(row * columns, columns);
    if (weighted(line, axes_[1].check, 1, fits) != 0 || !fits) return std::nullopt;
  }
  std::vector<Wide> at_first;  // by column: the value at the target's first knob, times the first divisor
  for (std::size_t column = 0; column < columns; ++column) {
    const std::optional<Wide> value = along_first(wide.subspan(column), columns);
    if (!value) return std::nullopt;
    at_first.push_back(*value);
  }
  const Wide value = columns > 1 ? weighted(at_first, axes_[1].weight, 1, fits) : at_first[0];
  const Wide divisor = columns > 1 ? times(axes_[0].divisor, axes_[1].divisor, fits) : axes_[0].divisor;
  return fits ? whole(value, divisor) : std::nullopt;
}

// The bilinear function through the four takes with the two least values of each knob, at (x, y). The result is times
// the area between these takes.
Evaluator::Wide Evaluator::bilinear(std::span<const Wide> counts, Wide x, Wide y, bool& fits) const {
  const std::vector<std::int64_t>&xs = values_[0], &ys = values_[1];
  Wide sum = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const Wide along_x = i == 0 ? Wide(xs[1]) - x : x - Wide(xs[0]);
    for (std::size_t j = 0; j < 2; ++j) {
      const Wide along_y = j == 0 ? Wide(ys[1]) - y : y - Wide(ys[0]);
      sum = plus(sum, times(counts[i * ys.size() + j], times(along_x, along_y, fits), fits), fits);
    }
  }
  return sum;
}

// Tries a + b x + c y + d xy + e (xy)^2. It is the law if, at all takes, two differences are in proportion: that of the
// counts from their bilinear function, and that of (xy)^2 from its own.
std::optional<std::int64_t> Evaluator::by_squared_product(std::span<const Wide> counts) const {
  const std::vector<std::int64_t>&xs = values_[0], &ys = values_[1];
  bool fits = true;
  const auto squared = [&](Wide x, Wide y) {
    const Wide product = times(x, y, fits);
    return times(product, product, fits);
  };
  std::vector<Wide> squares;
  for (const std::int64_t x : xs) {
    for (const std::int64_t y : ys) squares.push_back(squared(x, y));
  }
  const Wide area = times(Wide(xs[1]) - xs[0], Wide(ys[1]) - ys[0], fits);
  const auto off = [&](std::span<const Wide> all, std::size_t take) {
    const Wide x = xs[take / ys.size()], y = ys[take % ys.size()];
    return minus(times(area, all[take], fits), bilinear(all, x, y, fits), fits);
  };
  const Wide last = off(counts, takes_ - 1), last_square = off(squares, takes_ - 1);
  if (!fits || last_square == 0) return std::nullopt;
  for (std::size_t take = 0; take < takes_; ++take) {
    if (times(off(counts, take), last_square, fits) != times(off(squares, take), last, fits)) return std::nullopt;
  }
  const Wide x = at_[0], y = at_[1];
  const Wide square = minus(times(area, squared(x, y), fits), bilinear(squares, x, y, fits), fits);
  const Wide value = plus(times(bilinear(counts, x, y, fits), last_square, fits), times(last, square, fits), fits);
  const Wide divisor = times(area, last_square, fits);
  return fits ? whole(value, divisor) : std::nullopt;
}

std::optional<std::int64_t> evaluate(const Grid& grid, std::span<const std::int64_t> counts,
                                     std::span<const std::int64_t> at) {
  return Evaluator(grid, at)(counts);
}

std::vector<std::int64_t> at_or_above(const Grid& grid, std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> products, last;
  const std::vector<std::int64_t> one{1};
  const bool two = grid.axes.size() == 2;
  for (const std::int64_t x : grid.axes[0].values) {
    for (const std::int64_t y : two ? grid.axes[1].values : one) products.push_back(x * y);
  }
  for (const Grid::Axis& axis : grid.axes) last.push_back(axis.values.back());
  std::vector<std::int64_t> above(counts.begin(), counts.end());
  if (std::ranges::min(counts) > 0 && evaluate(grid, counts, last)) return above;

  std::map<std::int64_t, std::int64_t> most;  // by product
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::int64_t& known = most.try_emplace(products[i], 1).first->second;
    known = std::max(known, counts[i]);
  }
  std::int64_t steepest = 0;
  for (auto one_more = most.begin(), it = one_more++; one_more != most.end(); it = one_more++) {
    const std::int64_t run = one_more->first - it->first, rise = one_more->second - it->second;
    if (rise > 0) steepest = std::max(steepest, (rise + run - 1) / run);
  }
  std::int64_t least = 1 - steepest * products[0];
  for (std::size_t i = 0; i < counts.size(); ++i) least = std::max(least, counts[i] - steepest * products[i]);
  for (std::size_t i = 0; i < counts.size(); ++i) above[i] = least + steepest * products[i];
  return above;
}

}  // namespace ullage::predict
