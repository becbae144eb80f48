// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/law.h"

#include "ullage/base/check.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace ullage::predict {
namespace {

std::vector<std::int64_t> draw_values(std::mt19937_64& random, std::size_t count) {
  std::set<std::int64_t> values;
  while (values.size() < count) values.insert(1 + std::int64_t(random() % 200));
  return {values.begin(), values.end()};
}

// Coefficients of x^i y^j. All are positive, so that no value is negative.
struct Polynomial {
  std::vector<std::vector<std::int64_t>> coefficients;

  Polynomial(std::mt19937_64& random, std::size_t degree_x, std::size_t degree_y)
      : coefficients(degree_x + 1, std::vector<std::int64_t>(degree_y + 1)) {
    for (auto& row : coefficients) {
      for (std::int64_t& c : row) c = std::int64_t(random() % 5000);
    }
  }
  std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    std::int64_t sum = 0, x_power = 1;
    for (const auto& row : coefficients) {
      std::int64_t y_power = 1;
      for (const std::int64_t c : row) {
        sum += c * x_power * y_power;
        y_power *= y;
      }
      x_power *= x;
    }
    return sum;
  }
};

std::vector<std::int64_t> counts(const Grid& grid, const Polynomial& polynomial) {
  std::vector<std::int64_t> all;
  for (const std::int64_t x : grid.axes[0].values) {
    if (grid.axes.size() == 1) {
      all.push_back(polynomial(x, 1));
      continue;
    }
    for (const std::int64_t y : grid.axes[1].values) all.push_back(polynomial(x, y));
  }
  return all;
}

class RandomLaw : public testing::TestWithParam<int> {
 protected:
  std::mt19937_64 random_{std::uint64_t(GetParam())};
  Grid grid_;
  std::vector<std::int64_t> counts_, at_;
  std::int64_t truth_ = 0;

  void SetUp() override {
    std::vector<std::size_t> degrees(2, 0);
    const std::size_t axes = 1 + random_() % 2;
    for (std::size_t i = 0; i < axes; ++i) {
      const std::size_t values = 3 + random_() % 3;
      grid_.axes.push_back({i == 0 ? "x" : "y", draw_values(random_, values)});
      degrees[i] = random_() % (values - 1);
      at_.push_back(1 + std::int64_t(random_() % 1000));
    }
    const Polynomial polynomial(random_, degrees[0], degrees[1]);
    counts_ = counts(grid_, polynomial);
    truth_ = polynomial(at_[0], axes == 2 ? at_[1] : 1);
  }
};

TEST_P(RandomLaw, IsFoundExactly) { EXPECT_EQ(evaluate(grid_, counts_, at_), truth_); }

TEST_P(RandomLaw, IsNoneWithOneByteChangedAnywhere) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    for (const int change : {1, -1}) {
      counts_[i] += change;
      EXPECT_EQ(evaluate(grid_, counts_, at_), std::nullopt) << "count " << i;
      counts_[i] -= change;
    }
  }
}

TEST_P(RandomLaw, GivesBackWhatWasMeasured) {
  std::size_t i = 0;
  for (const std::int64_t x : grid_.axes[0].values) {
    if (grid_.axes.size() == 1) {
      EXPECT_EQ(evaluate(grid_, counts_, std::vector{x}), counts_[i++]);
      continue;
    }
    for (const std::int64_t y : grid_.axes[1].values)
      EXPECT_EQ(evaluate(grid_, counts_, std::vector{x, y}), counts_[i++]);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLaw, testing::Range(0, 200));

// A law of the two sides of a picture: a + b x + c y + d xy + e (xy)^2, on grids of at least three values each.
class RandomAreaLaw : public testing::TestWithParam<int> {
 protected:
  std::mt19937_64 random_{std::uint64_t(GetParam())};
  Grid grid_;
  std::vector<std::int64_t> counts_, at_;
  std::int64_t factors_[5] = {};

  std::int64_t count(std::int64_t x, std::int64_t y) const {
    return factors_[0] + factors_[1] * x + factors_[2] * y + factors_[3] * x * y + factors_[4] * x * y * x * y;
  }
  void SetUp() override {
    for (const char* name : {"width", "height"}) {
      grid_.axes.push_back({name, draw_values(random_, 3 + random_() % 2)});
      at_.push_back(1 + std::int64_t(random_() % 2000));
    }
    for (std::int64_t& factor : factors_) factor = std::int64_t(random_() % 5000);
    for (const std::int64_t x : grid_.axes[0].values) {
      for (const std::int64_t y : grid_.axes[1].values) counts_.push_back(count(x, y));
    }
  }
};

TEST_P(RandomAreaLaw, IsFoundExactly) { EXPECT_EQ(evaluate(grid_, counts_, at_), count(at_[0], at_[1])); }

TEST_P(RandomAreaLaw, IsNoneWithOneByteChangedAnywhere) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    for (const int change : {1, -1}) {
      counts_[i] += change;
      EXPECT_EQ(evaluate(grid_, counts_, at_), std::nullopt) << "count " << i;
      counts_[i] -= change;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomAreaLaw, testing::Range(0, 100));

Grid one_knob(std::vector<std::int64_t> values) { return {{{"batch", std::move(values)}}}; }
std::optional<std::int64_t> at(const Grid& grid, std::vector<std::int64_t> counts, std::int64_t target) {
  return evaluate(grid, counts, std::vector{target});
}

TEST(Law, NeedsAsManyValuesAsItsDegreeAndTwo) {
  EXPECT_EQ(at(one_knob({1, 2, 3}), {1, 4, 9}, 10), std::nullopt);
  EXPECT_EQ(at(one_knob({1, 2, 3, 4}), {1, 4, 9, 16}, 10), 100);
  EXPECT_EQ(at(one_knob({1, 2, 3, 4}), {1, 8, 27, 64}, 10), std::nullopt);
}

TEST(Law, ChecksEveryLineOfTheGrid) {
  const Grid grid{{{"x", {1, 2, 3}}, {"y", {1, 2, 3}}}};
  EXPECT_EQ(evaluate(grid, std::vector<std::int64_t>{1, 2, 3, 2, 4, 6, 3, 6, 9}, std::vector<std::int64_t>{5, 7}), 35);
  // One table is affine along x but not along y, the other along y but not along x.
  const std::vector<std::int64_t> rows_bent = {1, 4, 9, 2, 5, 10, 3, 6, 11};
  const std::vector<std::int64_t> columns_bent = {1, 2, 3, 4, 5, 6, 9, 10, 11};
  EXPECT_EQ(evaluate(grid, rows_bent, std::vector<std::int64_t>{5, 7}), std::nullopt);
  EXPECT_EQ(evaluate(grid, columns_bent, std::vector<std::int64_t>{5, 7}), std::nullopt);
}

TEST(Law, OfTwoSidesHasNoOtherSquares) {
  const auto law = [](auto&& count) {
    const Grid grid{{{"width", {144, 160, 176}}, {"height", {144, 160, 176}}}};
    std::vector<std::int64_t> counts;
    for (const std::int64_t x : grid.axes[0].values) {
      for (const std::int64_t y : grid.axes[1].values) counts.push_back(count(x / 16, y / 16));
    }
    return evaluate(grid, counts, std::vector<std::int64_t>{896, 640});
  };
  using Side = std::int64_t;
  EXPECT_EQ(law([](Side x, Side y) { return 4 * x * y * x * y; }), 4 * 56 * 56 * 40 * 40);
  EXPECT_EQ(law([](Side x, Side y) { return 4 * x * x * y; }), std::nullopt);
  EXPECT_EQ(law([](Side x, Side) { return 4 * x * x; }), std::nullopt);
  EXPECT_EQ(law([](Side x, Side y) { return 4 * x * y * x * y + x * x; }), std::nullopt);
  EXPECT_EQ(law([](Side x, Side y) { return 4 * x * y * x * y * x * y; }), std::nullopt);
  EXPECT_EQ(law([](Side x, Side y) { return (48 * x * y + 4095) / 4096 * 4096; }), std::nullopt);
}

TEST(Law, IsNoneWhereTheResultIsNoWholeNumber) {
  // Half a byte for each unit: a whole number only at even values.
  EXPECT_EQ(at(one_knob({2, 4, 6}), {1, 2, 3}, 8), 4);
  EXPECT_EQ(at(one_knob({2, 4, 6}), {1, 2, 3}, 7), std::nullopt);
}

TEST(Law, IsNoneBelowZero) {
  EXPECT_EQ(at(one_knob({2, 3, 4}), {20, 10, 0}, 4), 0);
  EXPECT_EQ(at(one_knob({2, 3, 4}), {20, 10, 0}, 5), std::nullopt);
  EXPECT_EQ(at(one_knob({2, 3, 4}), {-1, -1, -1}, 5), std::nullopt);
}

TEST(Law, IsNoneWhereNumbersPassTheirBits) {
  const std::int64_t large = INT64_MAX / 4;
  EXPECT_EQ(at(one_knob({1, 2, 3}), {large, 2 * large, 3 * large}, 4), 4 * large);
  EXPECT_EQ(at(one_knob({1, 2, 3}), {large, 2 * large, 3 * large}, 5), std::nullopt);
  EXPECT_EQ(at(one_knob({1, 2, 3}), {1, 2, 3}, INT64_MAX), INT64_MAX);
  const Grid far = one_knob({1, 1 << 30, std::int64_t{1} << 40, std::int64_t{1} << 50, std::int64_t{1} << 60});
  EXPECT_EQ(at(far, {1, 2, 3, 4, 5}, INT64_MAX), std::nullopt);
  EXPECT_EQ(at(far, {7, 7, 7, 7, 7}, INT64_MAX), 7);
}

TEST(Law, WantsAGridOfThreeAscendingValues) {
  EXPECT_THROW(at(one_knob({1, 2}), {1, 2}, 3), ContractError);
  EXPECT_THROW(at(one_knob({1, 3, 2}), {1, 3, 2}, 3), ContractError);
  EXPECT_THROW(at(one_knob({1, 2, 3}), {1, 2}, 3), ContractError);
}

}  // namespace
}  // namespace ullage::predict
