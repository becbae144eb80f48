// SPDX-License-Identifier: Apache-2.0
#pragma once

// The UUID and the bus address of a dry card. `card` is its number in the machine, not an ordinal.

#include "ullage/drycard/card/abi.h"

#include <string>

namespace ullage::drycard {

Uuid uuid_of(int card);
std::string uuid_text(int card);  // "GPU-756c6c61-..."
std::string bus_text(int card);   // "0000:01:00.0"
// Returns the number of the card with this bus address. Its domain may have four or eight digits. -1: no dry card can
// have the address. The number may be above those of the machine's cards.
int card_at_bus(const char* text);
inline int bus_of(int card) { return card + 1; }

}  // namespace ullage::drycard
