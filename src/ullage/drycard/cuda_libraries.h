// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which shared objects are CUDA's, and which of them has a function, by their names.

#include <string_view>

namespace ullage::drycard {

// "libcublas" for "libcublas.so.13", and for "libcublas-37d11411.so.11" as wheels with their own copies name it. Empty:
// no library of CUDA.
std::string_view cuda_library(std::string_view soname);

// "libcublas" for "cublasCreate_v2". Empty: no function of CUDA.
std::string_view cuda_library_of_function(std::string_view name);

// 13 for "libcudart.so.13", 11 for "libcudart.so.11.0"; 0: the name has none.
int major_version(std::string_view soname);

}  // namespace ullage::drycard
