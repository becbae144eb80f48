// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out by their names which shared objects are libraries of CUDA, and which library a function belongs to. cuDNN,
// NCCL, NVML and others that come with CUDA count as such; the table is in cuda_libraries.cpp.

#include <string_view>

namespace ullage::drycard {

// Returns "libcublas" for "libcublas.so.13". Returns it for "libcublas-37d11411.so.11" too, because wheels add a hash
// to the names of the copies that they bring. Empty if it is no library of CUDA. All results here live for ever.
std::string_view cuda_library(std::string_view soname);

// Returns "libcublas" for "cublasCreate_v2": the library with the longest prefix that the name begins with. Empty if it
// is no function of CUDA.
std::string_view cuda_library_of_function(std::string_view name);

// Returns 13 for "libcudart.so.13" and 11 for "libcudart.so.11.0"; 0 if the name has no version.
int major_version(std::string_view soname);

}  // namespace ullage::drycard
