// SPDX-License-Identifier: Apache-2.0
#pragma once

// The driver's functions behind cudaGetDriverEntryPointByVersion: what expandable segments need, and one answer
// "not supported" for all others.

namespace ullage::oracle {

// Never null. `name` as the driver spells it: "cuMemMap".
void* driver_function(const char* name);

}  // namespace ullage::oracle
