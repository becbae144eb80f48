// SPDX-License-Identifier: Apache-2.0
#pragma once

// An out-of-memory error as a program printed it: its figures, the library that reported it, the Python traceback that
// ended in it, and the log lines around it. Every figure is optional. A figure is none if the message lacks it, or if
// it does not fit 64 bits ("17179869184.00 GiB", by which PyTorch means "no limit"). "GB" in a message is read as GiB.

#include "ullage/base/bytes.h"
#include "ullage/trace/recording/stacks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::trace {

// The library that reported the error.
enum class Teller {
  Cuda,             // PyTorch's caching allocator on CUDA
  CudaDriver,       // "CUDA error: out of memory", "cuda runtime error (2)": a call outside the allocator, no figures
  CudaMallocAsync,  // PyTorch with the driver's own pool
  Hip,
  Xpu,
  Npu,
  Mps,
  Metal,         // "Invalid buffer size"
  Cpu,           // DefaultCPUAllocator, Torch 7's "Buy new RAM!", numpy, std::bad_alloc
  SharedMemory,  // a worker of a DataLoader: bus error, insufficient shared memory
  KernelKill,    // "Killed", exit code 137, signal 9, the kernel's oom-kill line
  Cublas,
  Cudnn,
  Cusolver,
  Cusparse,
  Cufft,
  Magma,
  Nccl,
  Vllm,    // its refusal to start
  Ullage,  // our own refusal
  Jax,
  TensorFlow,
  Other,
};

// Whose limit the message says was reached. If it names one, the free bytes of the device do not explain the error.
enum class Limit : std::uint8_t {
  None,     // it names none
  Heap,     // of a virtual machine: Java, Node, WebAssembly
  Arena,    // of a library's own allocator
  Program,  // that the program set for itself
  Buffer,   // of one buffer or binding
};

struct ProcessUse {
  std::uint64_t pid = 0;
  Bytes bytes;
};

struct OutOfMemory {
  Teller teller = Teller::Other;
  Limit limit = Limit::None;
  std::string form;            // the name of the wording, "cuda-2.1"; docs/explain.md lists them
  std::string torch;           // the versions with this wording, "2.2 to 2.4"; empty: unknown
  std::string text;            // the message on one line, without colours and prefixes, at most 4 KiB
  std::uint64_t line = 0;      // line of the log where it appears first, from 1
  std::uint64_t repeated = 1;  // how often the log has it with the same figures
  std::optional<unsigned> device;
  std::optional<unsigned> rank;  // in a distributed program, if a prefix has it

  std::optional<Bytes> requested;
  std::optional<Bytes> capacity;
  std::optional<Bytes> allocated;      // by tensors
  std::optional<Bytes> free;           // on the device, or to this process
  std::optional<Bytes> reserved;       // by PyTorch's pool, allocated bytes included
  std::optional<Bytes> unallocated;    // reserved but not allocated ("cached" up to 1.3)
  std::optional<Bytes> private_pools;  // part of allocated that is in private pools (CUDA graphs)
  std::optional<Bytes> process;        // in use by this process, memory outside PyTorch included
  std::optional<Bytes> allowed;        // by set_per_process_memory_fraction, MPS "max allowed"
  std::optional<Bytes> other;          // MPS "other allocations"; Ullage: resident bytes outside the pool
  std::optional<Bytes> active;         // NPU "current active": allocated, or waiting for another stream
  std::optional<Bytes> largest_block;  // limit for a single request (Arc before torch 2.5)
  // Bytes in all: what a model needs (Ollama), or the budget that would serve the request (Ullage).
  std::optional<Bytes> needed;
  std::vector<ProcessUse> processes;  // "Process 123 has 4.00 GiB memory in use"
  Bytes precision;                    // half a unit of the last digit of the coarsest figure ("11.17 GiB": 5.1 MiB)

  std::vector<Frame> traceback;     // the Python traceback that ended in this error, innermost frame first
  std::vector<std::string> code;    // index as in traceback: the source line that the traceback shows, or empty
  std::vector<std::string> after;   // at most 10 log lines after it: people often paste the traceback below the error
  std::vector<std::string> before;  // at most 20 log lines before it, oldest first: they often name epoch, step, phase
};

}  // namespace ullage::trace
