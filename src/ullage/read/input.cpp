// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/input.h"
