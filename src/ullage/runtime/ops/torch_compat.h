// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that files that include torch are compiled with the right flags, and against torch 2.11 or later. 2.11 to 2.13
// are known to compile. It also defines TORCH_VERSION_MAJOR and _MINOR. Include it before any header of torch. One file
// of a target is enough for the check, because all of them have the same flags. Edit it when the runtime needs a newer
// torch.

#if __cplusplus < 202002L
#error "Ullage's runtime must be compiled as C++20 (-std=c++20): torch's headers ask for it since 2.12"
#endif
#ifndef NDEBUG
#error \
    "Ullage's runtime must be compiled with -DNDEBUG: without it some structs of torch have another layout than in its libraries"
#endif

#include <torch/headeronly/version.h>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11
#error "Ullage's runtime needs torch 2.11 or later"
#endif
