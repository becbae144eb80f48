// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stubs call this for a function that the dry card does not implement.

#include "ullage/drycard/card/abi.h"

// The stub libraries call this with the name of every function that is not implemented here. Counts the call and
// returns success. The ledger gets the name once, unless the function only computes on the card: doing nothing is right
// then.
ULLAGE_CARD_API int ullage_drycard_unknown(const char* name);
