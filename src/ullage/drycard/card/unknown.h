// SPDX-License-Identifier: Apache-2.0
#pragma once

// What happens when a program calls a function of CUDA that the dry card does not implement.

#include "ullage/drycard/card/abi.h"

// The stub libraries call this with the name of a function that is not implemented here. Does nothing and returns
// success. If the function belongs to a mathematical library and only computes on the card, doing nothing is right.
// Such a call counts as one kernel, unless it only changes a setting or ends a handle. Any other call counts as
// unknown, and the ledger gets the function's name once.
ULLAGE_CARD_API int ullage_drycard_unknown(const char* name);
