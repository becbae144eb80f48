// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes, addresses and times as separate types, so that one is never mistaken for another. Arithmetic on bytes and
// addresses is integral and checked: a result of 2^64 or more, or below zero, throws ContractError.

#include "ullage/base/check.h"

#include <compare>
#include <cstdint>

namespace ullage {

struct Bytes {
  std::uint64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;

  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    ULLAGE_CHECK(a.count <= UINT64_MAX - b.count, "sum of bytes passes 2^64");
    return {a.count + b.count};
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    ULLAGE_CHECK(a.count >= b.count, "difference of bytes is below zero");
    return {a.count - b.count};
  }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t times) {
    ULLAGE_CHECK(times == 0 || a.count <= UINT64_MAX / times, "product of bytes passes 2^64");
    return {a.count * times};
  }
  friend constexpr Bytes operator/(Bytes a, std::uint64_t parts) {
    ULLAGE_CHECK(parts != 0, "bytes divided by zero");
    return {a.count / parts};
  }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }
};

// a - b, or zero if b is larger.
constexpr Bytes saturating_sub(Bytes a, Bytes b) { return a > b ? a - b : Bytes{}; }

// Rounds up or down to a multiple of `unit`. ContractError unless `unit` is a power of two.
constexpr Bytes round_up(Bytes a, Bytes unit) {
  ULLAGE_CHECK(unit.count != 0 && (unit.count & (unit.count - 1)) == 0, "unit is no power of two");
  return {(a + unit - Bytes{1}).count & ~(unit.count - 1)};
}
constexpr Bytes round_down(Bytes a, Bytes unit) {
  ULLAGE_CHECK(unit.count != 0 && (unit.count & (unit.count - 1)) == 0, "unit is no power of two");
  return {a.count & ~(unit.count - 1)};
}

// A place in the address space of the process, or of a simulated device.
struct Address {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(Address, Address) = default;
  friend constexpr Address operator+(Address a, Bytes b) { return {(Bytes{a.value} + b).count}; }
  friend constexpr Bytes operator-(Address a, Address b) { return Bytes{a.value} - Bytes{b.value}; }
};

struct Seconds {
  double count = 0;
  friend constexpr auto operator<=>(Seconds, Seconds) = default;
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n} * 1024; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n} * (1024ull * 1024); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n} * (1024ull * 1024 * 1024); }
}  // namespace literals

}  // namespace ullage
