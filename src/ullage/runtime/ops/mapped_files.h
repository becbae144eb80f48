// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises weights that are mapped from a file (safetensors, torch.load(mmap=True)). They are not the pool's, but
// only ops of this process change them. So an op that reads them can be run again as long as no op has written to them.

#include <c10/core/StorageImpl.h>

namespace ullage::runtime {

// Do the bytes of `storage` lie in a private mapping of a file? False for a storage that torch was given from outside
// (torch.from_numpy, torch::from_blob), because its owner can change the bytes without an op. Reads /proc/self/maps
// when it meets a storage for the first time. Any thread may call.
bool lies_in_private_file(const c10::intrusive_ptr<c10::StorageImpl>& storage);

}  // namespace ullage::runtime
