// SPDX-License-Identifier: Apache-2.0
#pragma once

// The clauses of message_forms.h, which may follow a message's lead: a table for each family of messages. A row has the
// pattern (message_pattern.h explains $, #, ~ and the other gaps), the figures that its sizes set, and marks. Only
// message_forms.cpp and message_general.h, which have the leads, include this file.

#include "ullage/read/log/message_forms.h"

namespace ullage::read {

using M = trace::OutOfMemory;

// PyTorch's caching allocators: CUDA from torch 1.0 on, HIP, XPU, NPU, and backends that copied their wording.
// c10/cuda/CUDACachingAllocator.cpp, c10/xpu/XPUCachingAllocator.cpp.
inline constexpr Clause kPool[] = {
    {"Tried to allocate more than $ memory", {&M::requested}, kBeyondOneEb},
    {"Tried to allocate $", {&M::requested}, kRequested},
    {"larger than $!", {&M::largest_block}},
    {"GPU # has a total capacity of $", {&M::capacity}, kCapacityOf},
    {"GPU # has a total capacty of $", {&M::capacity}, kMisspelt},
    {"GPU #;"},
    {"NPU #;"},
    {"XPU #;"},
    {"HPU #;"},
    {"$ total capacity", {&M::capacity}},
    {"require $", {&M::requested}},
    {"$ already allocated", {&M::allocated}},
    {"$ current active", {&M::active}},
    {"of which $ is free", {&M::free}, kFree},
    {"$ free", {&M::free}, kFree},
    {"$ allowed;", {&M::allowed}, kAllowed},
    {"$ cached", {&M::unallocated}, kCached},
    {"$ reserved in total by PyTorch", {&M::reserved}, kReservedTotal},
    {"Including non-PyTorch memory, this process has $ memory in use", {&M::process}},
    {"this process has $ memory in use", {&M::process}},
    {"Process ^ has $ memory in use"},
    {"Of the allocated memory $ is allocated by PyTorch", {&M::allocated}},
    {"with $ allocated in private pools (e.g., CUDA Graphs)", {&M::private_pools}, kPrivatePools},
    {"with $ allocated in private pools", {&M::private_pools}, kPrivatePools},
    {"and $ is reserved by PyTorch but unallocated", {&M::unallocated}},
    {"If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation", {}, kSplitHint},
    {"If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation",
     {},
     kSplitHint},
    {"If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid "
     "fragmentation",
     {},
     kExpandHint | kNewSetting},
    {"If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to "
     "avoid fragmentation",
     {},
     kExpandHint},
    {"If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid "
     "fragmentation",
     {},
     kExpandHint | kHipSetting},
    {"try setting max_split_size_mb", {}, kSplitHint},
    {"PYTORCH_ALLOC_CONF=expandable_segments:True", {}, kExpandHint | kNewSetting},
    {"expandable_segments:True", {}, kExpandHint},
    {"See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"},
    {"See documentation for Memory Management (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"},
    {"See documentation for Memory Management (https://docs.pytorch.org/docs/stable/notes/"
     "cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf)"},
    {"See documentation for Memory Management (https://docs.pytorch.org/docs/stable/notes/"
     "cuda.html#environment-variables)"},
    {"See documentation for Memory Management"},
    {"Please use `empty_cache` to release all unoccupied cached memory", {}, kEmptyCacheHint},
};

// aten/src/ATen/mps/MPSAllocator.mm; its older label "GB" means GiB, too.
inline constexpr Clause kMps[] = {
    {"MPS allocated: $", {&M::allocated}},
    {"other allocations: $", {&M::other}},
    {"max allowed: $", {&M::allowed}},
    {"Tried to allocate $", {&M::requested}, kRequested},
    {"on private pool"},
    {"on shared pool"},
    {"Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system "
     "failure)"},
};

inline constexpr Clause kMetal[] = {
    {"Invalid buffer size: $", {&M::requested}},
};

// mlx/backend/metal/allocator.cpp
// oMLX, which computes a request's peak beforehand
inline constexpr Clause kMetalCeiling[] = {
    {"metal_cap ceiling is $", {&M::capacity}},
};

inline constexpr Clause kMetalMalloc[] = {
    {"Attempting to allocate $", {&M::requested}},
    {"maximum allowed buffer size of $", {&M::largest_block}},
};

// llama.cpp, ggml-alloc.c, ggml-backend.cpp, ggml-vulkan.cpp
inline constexpr Clause kGgml[] = {
    {"Device memory allocation of size | failed", {&M::requested}},
    {"attempted to allocate $", {&M::requested}},
    {"too large for params buffer: |", {&M::requested}},
    {"buffer of size |", {&M::requested}},
    {"failed to allocate buffer, size = $", {&M::requested}},
    {"can't allocate | Bytes of memory on device", {&M::requested}},
};

// llama.cpp, ggml-cuda.cu; Ollama, server/sched.go
inline constexpr Clause kPinned[] = {
    {"failed to allocate $ of pinned memory", {&M::requested}},
};
inline constexpr Clause kOllama[] = {
    {"system memory ($) than is available ($)", {&M::needed, &M::free}},
};

// c10/core/impl/alloc_cpu.cpp. Torch 7 stated whole GiB.
inline constexpr Clause kCpu[] = {
    {"you tried to allocate $", {&M::requested}},
    {"Error code % (Cannot allocate memory)"},
    {"Buy new RAM!"},
};

// aten/src/ATen/MapAllocator.cpp, numpy/_core/_exceptions.py, ONNX Runtime, TensorRT, llama.cpp
inline constexpr Clause kHost[] = {
    {"unable to mmap $ from file", {&M::requested}},
    {"Unable to allocate $ for an array with shape", {&M::requested}},
    {"Unable to allocate $ for an array", {&M::requested}},
    {"requested buffer of size %"},
    {"for an array with shape"},
};

// duckdb, src/storage/standard_buffer_manager.cpp, src/storage/buffer/buffer_pool.cpp, src/common/allocator.cpp
inline constexpr Clause kDuckDb[] = {
    {"Failed to allocate block of |", {&M::requested}},
    {"failed to allocate data of size $", {&M::requested}},
    {"could not allocate block of size $", {&M::requested}},
    {"failed to pin block of size $", {&M::requested}},
};

// ClickHouse, Common/MemoryTracker.cpp
inline constexpr Clause kClickHouse[] = {
    {"exceeded: would use ~"},
    {"(attempt to allocate chunk of $)", {&M::requested}},
    {"(attempt to allocate chunk of $ bytes)", {&M::requested}},
    {"current RSS $", {&M::process}},
    {"current RSS: $", {&M::process}},
    {"maximum: $", {&M::allowed}},
};

// Programs that no table knows, and persons: "OOM errors trying to allocate ~86.9 GB on 80 GB GPUs".
inline constexpr Clause kGeneral[] = {
    {"allocate $", {&M::requested}},      {"allocate \\~$", {&M::requested}}, {"allocating $", {&M::requested}},
    {"allocation of $", {&M::requested}}, {"requested * $", {&M::requested}}, {"requestedSpace * $", {&M::requested}},
    {"requires $", {&M::requested}},      {"require $", {&M::requested}},     {"required * $", {&M::requested}},
    {"on $ GPU", {&M::capacity}},         {"free * $", {&M::free}},           {"freeSpace * $", {&M::free}},
    {"available * $", {&M::free}},
};

// onnxruntime, core/framework/bfc_arena.cc
inline constexpr Clause kOnnx[] = {
    {"requested buffer of size |", {&M::requested}},
    {"is smaller than requested bytes of |", {&M::requested}},
};

// paddle, fluid/memory/allocation/cuda_allocator.cc; its "GB" are binary
inline constexpr Clause kPaddle[] = {
    {"Out of memory error on GPU #. Cannot allocate $ memory", {&M::requested}},
    {"$ memory has been allocated", {&M::allocated}},
    {"available memory is only $", {&M::free}},
    {"Fail to alloc memory of | size", {&M::requested}},
};

// c10/cuda/CUDAMallocAsyncAllocator.cpp
inline constexpr Clause kMallocAsync[] = {
    {"Allocation on device # would exceed allowed memory. (out of memory)"},
    {"Allocation on device # would exceed allowed memory"},
    {"Currently allocated : $", {&M::allocated}},
    {"Requested : $", {&M::requested}, kRequested},
    {"Device limit : $", {&M::capacity}},
    {"Free (according to CUDA): $", {&M::free}},
    {"PyTorch limit (set by user-supplied memory fraction) : $", {&M::allowed}},
};

// The driver refused, and the program reported it: without figures (kDriver), or with the caller's (kCaller).
inline constexpr Clause kDriver[] = {
    {"RuntimeError: cuda runtime error (2) : out of memory at"},
    {"CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
     "incorrect."},
    {"For debugging consider passing CUDA_LAUNCH_BLOCKING=1"},
    {"Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions"},
};

inline constexpr Clause kCaller[] = {
    {"allocating $ on device #:", {&M::requested}},
    {"Requested amount of GPU memory ($)", {&M::requested}},
    {"Out of memory allocating $ (allocated so far: $", {&M::requested, &M::allocated}},
    {"limit set to: $", {&M::allowed}},
    {"Out of GPU memory trying to allocate $", {&M::requested}},
    {"insufficient memory on requested size of |", {&M::requested}},
    {"(size $)", {&M::requested}},
    {"(size %)"},
};

// rmm, include/rmm/error.hpp
inline constexpr Clause kRmm[] = {
    {"failed to allocate $", {&M::requested}},
};

// Rust, library/alloc/src/alloc.rs; R, src/main/memory.c; gcc, libiberty/xmalloc.c
inline constexpr Clause kAllocation[] = {
    {"memory allocation of $ failed", {&M::requested}},
    {"cannot allocate vector of size +", {&M::requested}},
    {"out of memory allocating $", {&M::requested}},
};

inline constexpr Clause kXla[] = {
    {"Failed to allocate request for ~ ($) on device ordinal #", {&M::requested}},
    {"Failed to allocate request for ~ ($)", {&M::requested}},
    {"Failed to allocate request for $ on device", {&M::requested}},
    {"on device ordinal #"},
    {"while trying to allocate $", {&M::requested}},
    {"Out of memory allocating $", {&M::requested}},
    {"Attempting to allocate +", {&M::requested}},
    {"There are + free", {&M::free}},
    {"Used + of + hbm", {&M::allocated, &M::capacity}},
};

// nccl, src/include/alloc.h
inline constexpr Clause kNccl[] = {
    {"Failed to CUDA calloc $", {&M::requested}},
    {"Failed to CUDA calloc async $", {&M::requested}},
};

// tensorflow, stream_executor/cuda/cuda_driver.cc and tsl/framework/bfc_allocator.cc
inline constexpr Clause kTfHost[] = {
    {"failed to alloc $ on host", {&M::requested}},
};
inline constexpr Clause kTfBfc[] = {
    {"ran out of memory trying to allocate $", {&M::requested}},
};

inline constexpr Clause kTfStats[] = {
    {"Limit: | InUse: |", {&M::capacity, &M::allocated}},
    {"MaxInUse: |"},
};

inline constexpr Clause kTensorFlow[] = {
    {"OOM when allocating tensor with shape[@] and type ?", {&M::requested}},
    {"OOM when allocating tensor with shape[@]"},
    {"device:GPU:#"},
    {"by allocator"},
};

// The limit of a machine that is rented: Spaces, Render, Cloud Run.
inline constexpr Clause kHosting[] = {
    {"Memory limit exceeded (+)", {&M::allowed}},
    {"Ran out of memory (used over +)", {&M::allowed}},
};

// mm/oom_kill.c
inline constexpr Clause kKernel[] = {
    {"anon-rss:$", {&M::process}, 0, true},
    {"file-rss:$", {&M::process}, 0, true},
    {"shmem-rss:$", {&M::process}, 0, true},
};

// vllm/v1/worker/utils.py, vllm/v1/core/kv_cache_utils.py
inline constexpr Clause kVllm[] = {
    {"Free memory on device cuda:# (&/$) on startup is", {&M::free, &M::capacity}},
    {"Free memory on device (&/$) on startup is", {&M::free, &M::capacity}},
    {"less than desired GPU memory utilization (%, $)", {&M::requested}},
    {"$ KV cache is needed, which is larger than the available KV cache memory ($)", {&M::requested, &M::free}},
    {"Decrease GPU memory utilization or reduce GPU memory used by other processes"},
};

// src/ullage/runtime/pool/pool.cpp. It gives each size twice: rounded, and in bytes.
inline constexpr Clause kUllage[] = {
    {"asked for ~ ($)", {&M::requested}, kRequested},
    {"asked for $;", {&M::requested}, kRequested},
    {"tensors hold ~ ($) live in ~ ($) resident", {&M::allocated, &M::reserved}},
    {"of the budget of ~ ($) the pool may hold ~ ($)", {&M::capacity, &M::allowed}},
    {"memory outside the pool grew to ~ ($)", {&M::other}},
    {"a budget of ~ ($) would serve this request", {&M::needed}},
    {"the budget of ~ ($) is below what the process needs before the first tensor", {&M::capacity}},
};

}  // namespace ullage::read
