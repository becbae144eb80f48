// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a dry card of the machine is known to those who do not count: its UUID and its place on the bus.

#include "ullage/drycard/card/abi.h"

#include <string>

namespace ullage::drycard {

Uuid uuid_of(int card);
std::string uuid_text(int card);    // "GPU-756c6c61-..."
std::string bus_text(int card);     // "0000:01:00.0"
int card_at_bus(const char* text);  // -1: none of this machine; the domain may have four or eight digits
inline int bus_of(int card) { return card + 1; }

}  // namespace ullage::drycard
