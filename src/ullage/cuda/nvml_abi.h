// SPDX-License-Identifier: Apache-2.0
#pragma once

// The few types and numbers of NVML's C interface that Ullage uses. They are repeated here so that Ullage builds
// without NVIDIA's headers. Source: nvml.h 13.3.29 (github.com/NVIDIA/go-nvml, pkg/nvml/nvml.h); nvidia-ml-py 13.615
// has the same.

#include <cstddef>
#include <cstdint>

namespace ullage::cuda::nvml_abi {

using Result = int;  // nvmlReturn_t
using Device = struct OpaqueNvmlDevice*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kTooSmall = 7;                      // NVML_ERROR_INSUFFICIENT_SIZE
inline constexpr std::uint64_t kNotAvailable = UINT64_MAX;  // NVML_VALUE_NOT_AVAILABLE: -1, whatever the type

struct Memory {  // nvmlMemory_t
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};

struct Process {  // nvmlProcessInfo_v2_t
  std::uint32_t pid;
  std::uint64_t used;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(Process) == 24 && offsetof(Process, used) == 8 && offsetof(Process, compute_instance) == 20);

}  // namespace ullage::cuda::nvml_abi
