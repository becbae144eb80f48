// SPDX-License-Identifier: Apache-2.0
#pragma once

// The driver functions that cudaGetDriverEntryPointByVersion returns: those that expandable segments need, and a
// function that answers "not supported" for all others.

namespace ullage::oracle {

// Never returns null. `name` is the driver's spelling, such as "cuMemMap".
void* driver_function(const char* name);

}  // namespace ullage::oracle
