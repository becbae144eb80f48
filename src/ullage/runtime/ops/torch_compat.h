// SPDX-License-Identifier: Apache-2.0
#pragma once

// What differs between the torch versions that Ullage compiles against (2.11 to 2.13), and what every file that
// includes torch must be compiled with. Included first by each of them.

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
