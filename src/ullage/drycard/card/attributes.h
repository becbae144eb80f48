// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that the runtime and the driver share: cudaDeviceAttr and CUdevice_attribute use the same numbers.

namespace ullage::drycard {

// Returns the value of an attribute of the card `ordinal`; 0 for attributes that are not known here.
int attribute_of(int attribute, int ordinal);

// Returns the handle of a card's context. It is only a number; no program dereferences it.
void* context_of(int ordinal);
int ordinal_of(const void* context);  // -1: it is not one of our handles

}  // namespace ullage::drycard
