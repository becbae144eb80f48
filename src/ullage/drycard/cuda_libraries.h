// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells by their names which shared objects are CUDA's, and which of them a function belongs to.

#include <string_view>

namespace ullage::drycard {

// Returns "libcublas" for "libcublas.so.13", and for "libcublas-37d11411.so.11", as wheels name copies of their own.
// Empty if it is no library of CUDA.
std::string_view cuda_library(std::string_view soname);

// Returns "libcublas" for "cublasCreate_v2". Empty if it is no function of CUDA.
std::string_view cuda_library_of_function(std::string_view name);

// Returns 13 for "libcudart.so.13" and 11 for "libcudart.so.11.0"; 0 if the name has no version.
int major_version(std::string_view soname);

}  // namespace ullage::drycard
