// SPDX-License-Identifier: Apache-2.0
#pragma once

// The few types and numbers of the CUDA driver's C interface that Ullage uses. They are repeated here so that Ullage
// builds without CUDA's headers. They have been the same since CUDA 11.2 (a driver is compatible with all older
// callers). If cuda.h is installed, tests/cuda compares them with it.

#include <cstddef>
#include <cstdint>

namespace ullage::cuda::abi {

using Result = int;  // CUresult
using Device = int;
using Pointer = std::uint64_t;  // CUdeviceptr
using Handle = std::uint64_t;   // CUmemGenericAllocationHandle
using Context = struct OpaqueContext*;
using Stream = struct OpaqueStream*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr int kPinned = 1;            // CU_MEM_ALLOCATION_TYPE_PINNED
inline constexpr int kOnDevice = 1;          // CU_MEM_LOCATION_TYPE_DEVICE
inline constexpr int kReadWrite = 3;         // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
inline constexpr int kLeast = 0;             // CU_MEM_ALLOC_GRANULARITY_MINIMUM
inline constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kPortable = 1;     // CU_MEMHOSTREGISTER_PORTABLE

struct Location {
  int type = kOnDevice;
  int id = 0;
};

struct AllocationFlags {
  unsigned char compression = 0;
  unsigned char direct = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

struct AllocationProperties {  // CUmemAllocationProp
  int type = kPinned;
  int handle_types = 0;
  Location location = {};
  void* windows = nullptr;
  AllocationFlags flags = {};
};

struct AccessDescription {  // CUmemAccessDesc
  Location location = {};
  int flags = kReadWrite;
};

}  // namespace ullage::cuda::abi
