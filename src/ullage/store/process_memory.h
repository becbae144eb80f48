// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the operating system says this process holds. The figures that budgets are judged by.

#include "ullage/base/bytes.h"

namespace ullage::store {

// Resident bytes now (/proc/self/statm). About 5 us.
Bytes resident_now();

// The most resident bytes since the process began (VmHWM of /proc/self/status), as /usr/bin/time prints. About 30 us.
Bytes resident_peak();

}  // namespace ullage::store
