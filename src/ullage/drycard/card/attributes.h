// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the runtime's and the driver's questions about a card have in common: the numbers of cudaDeviceAttr and
// CUdevice_attribute are the same.

namespace ullage::drycard {

int attribute_of(int attribute, int ordinal);

// The handle of a card's context: a number that no program looks behind.
void* context_of(int ordinal);
int ordinal_of(const void* context);  // -1: not one of ours

}  // namespace ullage::drycard
