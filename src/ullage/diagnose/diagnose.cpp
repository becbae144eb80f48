// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/diagnose.h"
