// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/cuda_libraries.h"

#include <gtest/gtest.h>

namespace ullage::drycard {
namespace {

TEST(CudaLibraries, AreKnownByTheirSonames) {
  EXPECT_EQ(cuda_library("libcudart.so.13"), "libcudart");
  EXPECT_EQ(cuda_library("libcudart.so.11.0"), "libcudart");
  EXPECT_EQ(cuda_library("libcudart-9335f6a2.so.12"), "libcudart");
  EXPECT_EQ(cuda_library("libnvidia-ml.so.1"), "libnvidia-ml");
  EXPECT_EQ(cuda_library("libcudnn_ops.so.9"), "libcudnn");
  EXPECT_EQ(cuda_library("libcublasLt.so.13"), "libcublasLt");
  for (const char* other : {"libc.so.6", "libc10_cuda.so", "libtorch_cuda.so", "libcudart", "", "libcudartx.so.1",
                            "libcuda.so/../../libcuda.so.1", "/opt/libcuda.so.1"}) {
    EXPECT_EQ(cuda_library(other), "") << other;
  }
}

TEST(CudaLibraries, HaveTheFunctionsOfTheLongestPrefix) {
  EXPECT_EQ(cuda_library_of_function("cuInit"), "libcuda");
  EXPECT_EQ(cuda_library_of_function("cuFileRead"), "libcufile");
  EXPECT_EQ(cuda_library_of_function("cudaMalloc"), "libcudart");
  EXPECT_EQ(cuda_library_of_function("__cudaRegisterFunction"), "libcudart");
  EXPECT_EQ(cuda_library_of_function("cublasCreate_v2"), "libcublas");
  EXPECT_EQ(cuda_library_of_function("cublasLtCreate"), "libcublasLt");
  EXPECT_EQ(cuda_library_of_function("cusparseLtInit"), "libcusparseLt");
  EXPECT_EQ(cuda_library_of_function("nvshmem_malloc"), "libnvshmem_host");
  for (const char* other : {"malloc", "cudart_of_mine", "cut", "cu", "cuda", "custom", "_ZN3c104cuda6deviceEv", ""}) {
    EXPECT_EQ(cuda_library_of_function(other), "") << other;
  }
}

TEST(CudaLibraries, HaveMajorVersions) {
  EXPECT_EQ(major_version("libcudart.so.13"), 13);
  EXPECT_EQ(major_version("libcudart.so.11.0"), 11);
  EXPECT_EQ(major_version("libcudart.so"), 0);
  EXPECT_EQ(major_version("libcudart.so.x"), 0);
}

}  // namespace
}  // namespace ullage::drycard
