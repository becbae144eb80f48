// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/caching_settings.h"
