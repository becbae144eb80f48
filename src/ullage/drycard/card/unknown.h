// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ullage/drycard/card/abi.h"

// Called by the stand-in libraries for every function that has no implementation here, with its name. Returns success.
// The ledger gets the name once, unless the function only computes on the card, for which doing nothing is right.
ULLAGE_CARD_API int ullage_drycard_unknown(const char* name);
