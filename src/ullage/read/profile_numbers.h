// SPDX-License-Identifier: Apache-2.0
#pragma once

// Times of profiler traces: microseconds with decimals, exact to the nanosecond, which a double is not (1.6e15
// microseconds since the epoch leave it a quarter of a microsecond).

#include "ullage/read/profile_events.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::read {

// None: beyond 64 bits of nanoseconds.
std::optional<Nanoseconds> nanoseconds_of_microseconds(std::int64_t microseconds);

// Of a JSON number with a fraction or an exponent, or with more digits than 64 bits hold. Decimals beyond the third are
// cut off; with an exponent the number is as exact as a double.
std::optional<Nanoseconds> nanoseconds_of_microseconds(std::string_view number);

}  // namespace ullage::read
