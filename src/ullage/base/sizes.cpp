// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace ullage {
namespace {

__extension__ using Wide = unsigned __int128;  // holds the exact product of two 64-bit numbers

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::uint64_t power(std::uint64_t base, int exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"K", power(1024, 1)},
                                          {"KiB", power(1024, 1)},
                                          {"M", power(1024, 2)},
                                          {"MiB", power(1024, 2)},
                                          {"G", power(1024, 3)},
                                          {"GiB", power(1024, 3)},
                                          {"T", power(1024, 4)},
                                          {"TiB", power(1024, 4)},
                                          {"kB", power(1000, 1)},
                                          {"MB", power(1000, 2)},
                                          {"GB", power(1000, 3)},
                                          {"TB", power(1000, 4)}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Error bad_size(std::string_view text, const std::string& why) {
  return {Error::Kind::BadArgument,
          "'" + std::string(text) + "' is not a size: " + why + "; write for example 900MiB, 1.5GiB, 2GB or 4096", ""};
}

// A decimal number as the exact fraction whole + part / scale. A double would round "1.1GiB".
struct Decimal {
  Wide whole = 0;
  std::uint64_t part = 0;
  std::uint64_t scale = 1;
  std::size_t length = 0;  // characters read; 0 if the text does not begin with a number
};

Decimal read_decimal(std::string_view text) {
  Decimal d;
  std::size_t i = 0;
  std::size_t digits = 0;
  for (; i < text.size() && is_digit(text[i]); ++i, ++digits) {
    if (d.whole < (static_cast<Wide>(1) << 100)) d.whole = d.whole * 10 + unsigned(text[i] - '0');
  }
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && is_digit(text[i]); ++i, ++digits) {
      if (d.scale >= 1'000'000'000'000ull) continue;  // after 12 decimals a digit is less than a byte, even in TiB
      d.part = d.part * 10 + unsigned(text[i] - '0');
      d.scale *= 10;
    }
  }
  d.length = digits == 0 ? 0 : i;
  return d;
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  const Decimal number = read_decimal(trimmed);
  if (number.length == 0) return bad_size(text, "it must start with a number");
  const std::string_view unit_name = trim(trimmed.substr(number.length));
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    if (number.whole > UINT64_MAX) return bad_size(text, "it passes 2^64 bytes");
    const Wide bytes = number.whole * unit.bytes + static_cast<Wide>(number.part) * unit.bytes / number.scale;
    if (bytes > UINT64_MAX) return bad_size(text, "it passes 2^64 bytes");
    return Bytes{static_cast<std::uint64_t>(bytes)};
  }
  return bad_size(text, "unknown unit '" + std::string(unit_name) + "'");
}

std::string to_string(Bytes bytes) {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  while (unit + 1 < kNames.size() && bytes.count / 1024 >= scale) {
    scale *= 1024;
    ++unit;
  }
  char text[48];
  if (unit == 0) {
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes.count));
  } else {
    // Rounds down, so that the text never says more than there is and never "1024.00 MiB".
    const auto hundredths = static_cast<unsigned long long>(static_cast<Wide>(bytes.count) * 100 / scale);
    std::snprintf(text, sizeof text, "%llu.%02llu %s", hundredths / 100, hundredths % 100, kNames[unit]);
  }
  return text;
}

std::string with_count(Bytes bytes) { return to_string(bytes) + " (" + std::to_string(bytes.count) + " bytes)"; }

std::string to_string(Seconds seconds) {
  const double s = seconds.count < 0 ? 0 : seconds.count;
  char text[48];
  if (s >= 3600) {
    const auto minutes = static_cast<unsigned long long>(std::llround(s / 60));
    std::snprintf(text, sizeof text, "%llu h %02llu min", minutes / 60, minutes % 60);
  } else if (s >= 60) {
    const auto whole = static_cast<unsigned long long>(std::llround(s));
    std::snprintf(text, sizeof text, "%llu min %02llu s", whole / 60, whole % 60);
  } else if (s >= 1) {
    std::snprintf(text, sizeof text, "%.1f s", s);
  } else if (s >= 1e-3) {
    std::snprintf(text, sizeof text, "%.1f ms", s * 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.0f us", s * 1e6);
  }
  return text;
}

}  // namespace ullage
