// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile_numbers.h"

#include <charconv>
#include <cmath>
#include <string>

namespace ullage::read {
namespace {
// Four times more than anybody's clock shows, and sums of two of them stay within 64 bits.
constexpr std::int64_t kMostMicroseconds = INT64_MAX / 4000;
}  // namespace

std::optional<Nanoseconds> nanoseconds_of_microseconds(std::int64_t microseconds) {
  if (microseconds < -kMostMicroseconds || microseconds > kMostMicroseconds) return std::nullopt;
  return Nanoseconds{microseconds * 1000};
}

std::optional<Nanoseconds> nanoseconds_of_microseconds(std::string_view number) {
  if (number.find_first_of("eE") != std::string_view::npos) {
    const double microseconds = std::strtod(std::string(number).c_str(), nullptr);
    if (!(std::abs(microseconds) <= static_cast<double>(kMostMicroseconds))) return std::nullopt;
    return Nanoseconds{static_cast<std::int64_t>(microseconds * 1000)};
  }
  const std::size_t point = number.find('.');
  std::int64_t whole = 0;
  const std::string_view digits = number.substr(0, point);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error != std::errc()) return std::nullopt;
  auto time = nanoseconds_of_microseconds(whole);
  if (!time || point == std::string_view::npos) return time;
  std::int64_t fraction = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t at = point + 1 + i;
    fraction = fraction * 10 + (at < number.size() ? number[at] - '0' : 0);
  }
  const bool negative = number.front() == '-';
  time->count += negative ? -fraction : fraction;
  return time;
}

}  // namespace ullage::read
