// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses sizes as people write them, and prints sizes and times as people read them.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <string>
#include <string_view>

namespace ullage {

// Reads "900MiB", "2GiB", "1.5 GB", "4096". K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024. kB, MB, GB and TB are
// powers of 1000. A bare number is bytes. Spaces around the number and the unit are ignored. Fractions are rounded down
// to whole bytes. Anything else (a sign, an unknown unit, more than 2^64 - 1 bytes) is BadArgument.
Result<Bytes> parse_bytes(std::string_view text);

// "2.00 GiB", "1.50 KiB", "512 B": binary units up to TiB, with two decimals (bytes have none), rounded down.
std::string to_string(Bytes bytes);

// "2.00 GiB (2147483648 bytes)": for messages from which a person may copy the exact number.
std::string with_count(Bytes bytes);

// "2 h 05 min", "3 min 20 s", "12.3 s", "4.5 ms", "120 us". A negative time prints as zero.
std::string to_string(Seconds seconds);

}  // namespace ullage
