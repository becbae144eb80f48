// SPDX-License-Identifier: Apache-2.0
#pragma once

// An out-of-memory error as a program told it in words: which library said it, the figures it gave, where in the log it
// stood and which Python frames were above it. Every figure is optional: none means that the words do not say it, or
// say more than 64 bits hold ("17179869184.00 GiB", PyTorch's way of saying "no limit"). GB of a message is binary like
// GiB.

#include "ullage/base/bytes.h"
#include "ullage/trace/recording/stacks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::trace {

enum class Teller {
  Cuda,             // PyTorch's caching allocator on CUDA
  CudaDriver,       // "CUDA error: out of memory", "cuda runtime error (2)": a call outside the allocator, no figures
  CudaMallocAsync,  // PyTorch on the driver's own pool
  Hip,
  Xpu,
  Npu,
  Mps,
  Metal,         // "Invalid buffer size"
  Cpu,           // DefaultCPUAllocator, Torch 7's "Buy new RAM!", numpy, std::bad_alloc
  SharedMemory,  // a loader's worker: bus error, insufficient shared memory
  KernelKill,    // "Killed", exit code 137, signal 9, the kernel's oom-kill line
  Cublas,
  Cudnn,
  Cusolver,
  Cusparse,
  Cufft,
  Magma,
  Nccl,
  Vllm,    // its refusal at start
  Ullage,  // our own refusal
  Jax,
  TensorFlow,
  Other,
};

struct ProcessUse {
  std::uint64_t pid = 0;
  Bytes bytes;
};

struct OutOfMemory {
  Teller teller = Teller::Other;
  std::string form;            // a name for the wording, "cuda-2.1": docs/explain.md lists them
  std::string torch;           // the versions that print it so, "2.2 to 2.4"; empty: cannot be told
  std::string text;            // the message itself on one line: no colours, prefixes or line breaks; at most 4 KiB
  std::uint64_t line = 0;      // of the log, from 1, where it was met first
  std::uint64_t repeated = 1;  // how often the log tells it with the same figures
  std::optional<unsigned> device;
  std::optional<unsigned> rank;  // of a distributed program, where a prefix says it

  std::optional<Bytes> requested;
  std::optional<Bytes> capacity;
  std::optional<Bytes> allocated;      // by tensors
  std::optional<Bytes> free;           // on the device, or to this process
  std::optional<Bytes> reserved;       // by PyTorch's pool, allocated bytes included
  std::optional<Bytes> unallocated;    // reserved but not allocated ("cached" up to 1.3)
  std::optional<Bytes> private_pools;  // of allocated: in private pools (CUDA graphs)
  std::optional<Bytes> process;        // in use by this process, what is not PyTorch's included
  std::optional<Bytes> allowed;        // by set_per_process_memory_fraction, MPS "max allowed"
  std::optional<Bytes> other;          // MPS "other allocations"; Ullage: the process's bytes outside the pool
  std::optional<Bytes> active;         // NPU "current active": allocated, or waiting for another stream
  std::optional<Bytes> largest_block;  // one request may not be larger (Arc before torch 2.5)
  std::optional<Bytes> needed;         // Ullage: the budget that would have served the request
  std::vector<ProcessUse> processes;   // "Process 123 has 4.00 GiB memory in use"
  Bytes precision;                     // half a unit of the last digit of the coarsest figure ("11.17 GiB": 5 MiB)

  std::vector<Frame> traceback;     // the Python traceback that ended in it, innermost first; its code lines in `code`
  std::vector<std::string> code;    // as traceback: the line of source that the traceback shows, or empty
  std::vector<std::string> before;  // lines of the log just before, at most 20, oldest first: epoch, step, phase
};

}  // namespace ullage::trace
