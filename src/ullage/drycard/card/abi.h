// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types and numbers of CUDA's runtime and driver that the dry card uses, so that it builds without CUDA's headers.
// They come from driver_types.h and cuda.h of CUDA 13.0 and 12.9. If those headers are installed, tests/drycard/card
// compares them. Handles are pointers to our own objects; an enum of CUDA is an int here.

#include <cstddef>
#include <cstdint>

// Exports a function under its C name and without a symbol version. The loader takes such a symbol for any version that
// a program wants.
#define ULLAGE_CARD_API extern "C" __attribute__((visibility("default")))

namespace ullage::drycard {

using Address = std::uintptr_t;  // an address of device memory, also CUdeviceptr

// cudaError_t and CUresult. The numbers used here are the same in both.
enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kNoKernelImage = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPeerAlreadyEnabled = 704,
  kPeerNotEnabled = 705,
  kNotSupported = 801,
};

enum MemoryType : int { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 };

struct Dim3 {
  unsigned x, y, z;
};

// cudaPointerAttributes. CUDA 13 adds eight words of 8 bytes that must be zero.
struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
};
inline constexpr std::size_t kPointerAttributes13 = 88;

struct FunctionAttributes {  // cudaFuncAttributes
  std::size_t shared_bytes;
  std::size_t const_bytes;
  std::size_t local_bytes;
  int most_threads;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode;
  int most_dynamic_shared;
  int carveout;
  int cluster_must_be_set;
  int cluster[3];
  int cluster_policy;
  int non_portable_cluster;
  int reserved[16];
};

struct Location {  // cudaMemLocation, CUmemLocation
  int type;
  int id;
};
inline constexpr int kOnDevice = 1;

struct PoolProperties {  // the part of cudaMemPoolProps and CUmemPoolProps that is read
  int type;
  int handle_types;
  Location location;
};

struct AllocationProperties {  // CUmemAllocationProp
  int type;
  int handle_types;
  Location location;
  void* windows;
  unsigned char flags[8];
};

struct AccessDescription {  // CUmemAccessDesc, cudaMemAccessDesc
  Location location;
  int flags;
};

struct LaunchConfig {  // cudaLaunchConfig_t; CUlaunchConfig has its stream at the same offset
  Dim3 grid;
  Dim3 block;
  std::size_t shared;
  void* stream;
};
static_assert(offsetof(LaunchConfig, stream) == 32);

struct IpcHandle {  // cudaIpcMemHandle_t and cudaIpcEventHandle_t
  char bytes[64];
};

struct Uuid {
  char bytes[16];
};

}  // namespace ullage::drycard
