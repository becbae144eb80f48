// SPDX-License-Identifier: Apache-2.0
#pragma once

// Leads (message_forms.h) with wordings that many programs use for a lack of memory. message_forms.cpp tries them after
// the leads that name one program. Add a row here for a new wording that is not one program's own. Words that anybody
// may use ("not enough memory") are in plain_tables.h.

#include "ullage/read/log/message_clauses.h"
#include "ullage/read/log/message_forms.h"

namespace ullage::read::general {

using enum trace::Teller;
using trace::Limit;

// The fields of a row are those of Lead, in this order: the pattern (message_pattern.h explains $, % and *), who prints
// it, the form, and the versions of PyTorch (none here). Then come the clauses with its figures, conditions on its
// place, and whose limit it names.
inline constexpr Lead kLeads[] = {
    // The words name a device, or a library or driver of one. Forms with "host": such a library ran out of the
    // machine's memory.
    {"ran out of memory, skipping batch", Cuda, "cuda", "", kPool},  // Boltz
    {"CUDA error: memory allocation fail", CudaDriver, "cuda-error", "", kDriver},
    {"hipErrorMemoryAllocation", CudaDriver, "hip-error-name", "", kDriver},
    {"HSA_STATUS_ERROR_OUT_OF_RESOURCES", CudaDriver, "hsa-error", "", {}},
    {"rocblas_status_memory_error", Cublas, "cublas-alloc", "", {}},
    {"PI_ERROR_OUT_OF_RESOURCES", Xpu, "xpu-driver", "", kDriver},
    {"PI_ERROR_OUT_OF_DEVICE_MEMORY", Xpu, "xpu-driver", "", kDriver},
    {"PI_ERROR_OUT_OF_HOST_MEMORY", Cpu, "xpu-host", "", {}},
    {"CL_OUT_OF_RESOURCES", Other, "opencl", "", {}},
    {"CL_OUT_OF_HOST_MEMORY", Cpu, "opencl-host", "", {}},
    {"CL_INVALID_BUFFER_SIZE", Other, "opencl", "", {}, 0, Limit::Buffer},
    {"Exceeded max size of memory object allocation", Other, "opencl", "", {}, 0, Limit::Buffer},
    {"GL_OUT_OF_MEMORY", Other, "graphics", "", {}},
    {"E_OUTOFMEMORY", Other, "graphics", "", {}},
    {"NvMapMemAlloc", Other, "tegra", "", {}, kWithError},
    {"Out of memory on device. To view more detail", Other, "matlab", "", {}},
    {"Not enough allocatable device memory", Other, "opencl", "", {}},
    {"Prefill out of memory", Other, "sglang-full", "", {}},
    {"Decode out of memory", Other, "sglang-full", "", {}},
    {"Not enough memory to handle % prefill tokens", Other, "tgi-prefill", "", {}},
    {"Not enough memory, use lower resolution", Other, "webui-attention", "", {}},
    {"cuMemoryAllocate failed", CudaDriver, "cuda-error", "", kDriver},
    {"cuMemAlloc failed", CudaDriver, "cuda-error", "", kDriver},
    {"Out of memory on Vulkan", Other, "vulkan", "", {}},     // Unreal
    {"[GPU] out of GPU resources", Other, "opencl", "", {}},  // OpenVINO
    {"Failed to alloc DEVICE memory", Other, "neuron", "", {}},
    {"Failed to allocate $ (usage:", Other, "neuron", "", kGeneral},

    // The words name the machine's memory.
    {"Insufficient memory) Failed to allocate $", Cpu, "host-alloc", "", kGeneral},  // OpenCV
    {"Insufficient memory to continue the execution", Cpu, "host-alloc", "", {}},    // .NET
    {"__rg_oom", Cpu, "host-alloc", "", {}},                                         // Rust
    {"[WinError 8] Not enough memory resources", Cpu, "windows-page-file", "", {}},
    {"[WinError 1450]", Cpu, "windows-page-file", "", {}},
    {"(os error 1450)", Cpu, "windows-page-file", "", {}},
    {"code*3221225495", Cpu, "windows-page-file", "", {}, kNoDigitBehind},  // STATUS_NO_MEMORY
    {"ENOMEM:", Cpu, "errno-12", "", {}, kNoName},
    {"spawn ENOMEM", Cpu, "errno-12", "", {}},
    {"malloc failed", Cpu, "errno-12", "", {}, kNoName},
    {"final link failed: memory exhausted", Cpu, "errno-12", "", {}},
    {"vector memory exhausted (limit", Cpu, "r-vector", "", {}, 0, Limit::Heap},
    {"vector memory limit of", Cpu, "r-vector", "", {}, kWithError, Limit::Heap},
    {"Could not reserve enough space for", Cpu, "java-native", "", {}},
    {"is larger than the maximum possible size", Cpu, "numpy", "", {}},
    {"WebAssembly.Memory(): could not allocate", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"Out of memory: wasm memory", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"Cannot enlarge memory arrays", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"Aborted(OOM)", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"Command exited with code 52", Cpu, "java-heap", "", {}, kNoDigitBehind, Limit::Heap},  // Spark's executor
    {"Query exceeded per-node memory limit", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"Query exceeded distributed", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"OOM command not allowed when used memory", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"Data too large, data for [", Cpu, "query-cap", "", {}, 0, Limit::Program},
    // PostgreSQL, whose table of locks has a fixed size.
    {"You might need to increase max_locks_per_transaction", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"You might need to increase max_pred_locks_per_transaction", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"memory layout cannot be allocated", Cpu, "ollama-system", "", {}},

    // Something ended a process that took too much memory.
    {"Killed: 9", KernelKill, "killed", "", {}, kNoDigitBehind},
    {"(signal: 9, SIGKILL", KernelKill, "signal-9", "", {}},
    {"by signal 9", KernelKill, "signal-9", "", {}, kNoDigitBehind},
    {"with signal 9", KernelKill, "signal-9", "", {}, kNoDigitBehind},  // collect2, of the linker
    {"by signal SIGKILL", KernelKill, "signal-9", "", {}},
    {"ERR! signal SIGKILL", KernelKill, "signal-9", "", {}},  // npm
    {"npm error signal SIGKILL", KernelKill, "signal-9", "", {}},
    {"exit code*SIGKILL", KernelKill, "signal-9", "", {}},
    {"exitcode*-9", KernelKill, "signal-9", "", {}, kNoDigitBehind},  // torchrun
    {"exitcode*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"returncode*-9", KernelKill, "signal-9", "", {}, kNoDigitBehind},
    {"returncode*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"with status*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"Killed (program", KernelKill, "killed", "", {}},     // gcc
    {"job killed: mem", KernelKill, "lsf-limit", "", {}},  // PBS, whose limit is one of a job as LSF's
    {"CANCELLED*OUT_OF_MEMORY", KernelKill, "slurm-limit", "", {}},
    {"State*OUT_OF_MEMORY", KernelKill, "slurm-limit", "", {}},
    {"RESOURCE_TYPE_MEMORY", KernelKill, "kernel-jetsam", "", {}},
    {"exceeded memory limit", KernelKill, "hosting-limit", "", {}},
    {"exceeded the memory limit", KernelKill, "hosting-limit", "", {}},
    {"exceeded its memory limit", KernelKill, "hosting-limit", "", {}},
    {"gone over its resource limits", KernelKill, "hosting-limit", "", {}},
    {"starves it for CPU/Memory", KernelKill, "maybe-killed", "", {}},  // of a runner of GitHub Actions
};

}  // namespace ullage::read::general
