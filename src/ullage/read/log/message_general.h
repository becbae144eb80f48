// SPDX-License-Identifier: Apache-2.0
#pragma once

// Leads (message_forms.h) with wordings that many programs use for a lack of memory. message_forms.cpp tries them after
// the leads that name one program. A lead whose form begins with "plain" counts only if a text has no other error
// (log.cpp), because it does not say who refused. Only "plain-device" says whose memory it was. Add a row here for a
// new wording that is not one program's own.

#include "ullage/read/log/message_clauses.h"
#include "ullage/read/log/message_forms.h"

namespace ullage::read::general {

using enum trace::Teller;
using trace::Limit;

// The line must also have a word such as "error". Rows whose wording is used for errors alone do not need it.
inline constexpr std::uint16_t kPlain = kWithError;

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
    {"Insufficient GPU memory", Other, "plain-device", "", {}},
    {"not enough GPU memory", Other, "plain-device", "", {}, kPlain},
    {"not enough VRAM", Other, "plain-device", "", {}, kPlain},
    {"not enough video memory", Other, "plain-device", "", {}, kPlain},
    {"ran out of VRAM", Other, "plain-device", "", {}},
    {"out of VRAM", Other, "plain-device", "", {}, kPlain},
    {"out of GPU memory", Other, "plain-device", "", {}, kPlain},
    {"GPU memory exhausted", Other, "plain-device", "", {}},
    {"does not fit on the GPU", Other, "plain-device", "", {}, kPlain},
    {"failed to allocate device memory", Other, "plain-device", "", {}},
    {"could not allocate device memory", Other, "plain-device", "", {}},

    // The words name the machine's memory.
    {"Insufficient memory) Failed to allocate $", Cpu, "host-alloc", "", kGeneral},  // OpenCV
    {"Insufficient memory to continue the execution", Cpu, "host-alloc", "", {}},    // .NET
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
    {"Cannot enlarge memory arrays", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"Aborted(OOM)", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"Command exited with code 52", Cpu, "java-heap", "", {}, kNoDigitBehind, Limit::Heap},  // Spark's executor
    {"Query exceeded per-node memory limit", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"Query exceeded distributed", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"OOM command not allowed when used memory", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"Data too large, data for [", Cpu, "query-cap", "", {}, 0, Limit::Program},
    {"memory layout cannot be allocated", Cpu, "ollama-system", "", {}},

    // Something ended a process that took too much memory.
    {"Killed: 9", KernelKill, "killed", "", {}, kNoDigitBehind},
    {"(signal: 9, SIGKILL", KernelKill, "signal-9", "", {}},
    {"killed by signal 9", KernelKill, "signal-9", "", {}, kNoDigitBehind},
    {"job killed: mem", KernelKill, "lsf-limit", "", {}},  // PBS, whose limit is one of a job as LSF's
    {"CANCELLED*OUT_OF_MEMORY", KernelKill, "slurm-limit", "", {}},
    {"State*OUT_OF_MEMORY", KernelKill, "slurm-limit", "", {}},
    {"RESOURCE_TYPE_MEMORY", KernelKill, "kernel-jetsam", "", {}},
    {"exceeded memory limit", KernelKill, "hosting-limit", "", {}},
    {"exceeded the memory limit", KernelKill, "hosting-limit", "", {}},
    {"exceeded its memory limit", KernelKill, "hosting-limit", "", {}},
    {"gone over its resource limits", KernelKill, "hosting-limit", "", {}},

    // The words say neither who refused nor whose memory it was.
    {"not enough memory", Other, "plain", "", {}, kPlain},
    {"insufficient memory", Other, "plain", "", {}, kPlain},
    {"failed to allocate $", Other, "plain", "", kGeneral, kPlain},
    {"failed to allocate memory", Other, "plain", "", {}, kPlain},
    {"could not allocate $", Other, "plain", "", kGeneral, kPlain},
    {"could not allocate memory", Other, "plain", "", {}, kPlain},
    {"unable to allocate $", Other, "plain", "", kGeneral, kPlain},
    {"unable to allocate memory", Other, "plain", "", {}, kPlain},
    {"cannot allocate memory", Other, "plain", "", {}, kPlain},
    {"cannot allocate $", Other, "plain", "", kGeneral, kPlain},
    {"Allocation of $ failed", Other, "plain", "", kGeneral, kPlain},
    {"memory allocation fail", Other, "plain", "", {}, kPlain},
    {"memory exhausted", Other, "plain", "", {}, kPlain},
    {"ran out of memory", Other, "plain", "", {}, kPlain},
    {"does not fit in memory", Other, "plain", "", {}, kPlain},
    {"exceeds available memory", Other, "plain", "", {}, kPlain},
    {"OutOfMemoryError()", Other, "plain", "", {}},
    {"Error: OOM", Other, "plain", "", {}, kAtLineEnd},

    // A person's report. The verb says that it happened; advice says "if you" or "may cause" (message.cpp).
    {"CUDA OOM", Other, "plain-device", "", {}, kWholeWords},
    {"GPU OOM", Other, "plain-device", "", {}, kWholeWords},
    {"OOM error", Other, "plain", "", kReported, kWholeWords},
    {"says out of memory", Other, "plain", "", kReported, kWholeWords},
    {"said out of memory", Other, "plain", "", kReported, kWholeWords},
    // In Chinese: the device's memory is blown, is not enough, overflows; then the machine's; then OOM with a verb.
    {"\xe7\x88\x86\xe6\x98\xbe\xe5\xad\x98", Other, "plain-device", "", {}},
    {"\xe6\x98\xbe\xe5\xad\x98\xe4\xb8\x8d\xe8\xb6\xb3", Other, "plain-device", "", {}},
    {"\xe6\x98\xbe\xe5\xad\x98\xe4\xb8\x8d\xe5\xa4\x9f", Other, "plain-device", "", {}},
    {"\xe6\x98\xbe\xe5\xad\x98\xe6\xba\xa2\xe5\x87\xba", Other, "plain-device", "", {}},
    {"\xe5\x86\x85\xe5\xad\x98\xe4\xb8\x8d\xe8\xb6\xb3", Cpu, "plain-host", "", {}},
    {"\xe5\x86\x85\xe5\xad\x98\xe6\xba\xa2\xe5\x87\xba", Cpu, "plain-host", "", {}},
    {"\xe4\xbc\x9aOOM", Other, "plain", "", {}, kWholeWords},
    {"\xe6\x8a\xa5OOM", Other, "plain", "", {}, kWholeWords},
    {"\xe5\xb0\xb1OOM", Other, "plain", "", {}, kWholeWords},
    {"\xe5\xaf\xbc\xe8\x87\xb4OOM", Other, "plain", "", {}, kWholeWords},
    // Windows' Task Manager calls the machine's memory that a card may use "shared GPU memory".
    {"into shared GPU memory", Other, "plain-spill", "", {}},
    {"got OOM", Other, "plain", "", kReported, kWholeWords},
    {"got an OOM", Other, "plain", "", kReported, kWholeWords},
    {"get OOM", Other, "plain", "", kReported, kWholeWords},
    {"get an OOM", Other, "plain", "", kReported, kWholeWords},
    {"gets OOM", Other, "plain", "", kReported, kWholeWords},
    {"getting OOM", Other, "plain", "", kReported, kWholeWords},
    {"hit OOM", Other, "plain", "", kReported, kWholeWords},
    {"hit an OOM", Other, "plain", "", kReported, kWholeWords},
    {"hits OOM", Other, "plain", "", kReported, kWholeWords},
    {"hitting OOM", Other, "plain", "", kReported, kWholeWords},
    {"cause OOM", Other, "plain", "", kReported, kWholeWords},
    {"causes OOM", Other, "plain", "", kReported, kWholeWords},
    {"caused OOM", Other, "plain", "", kReported, kWholeWords},
    {"causing OOM", Other, "plain", "", kReported, kWholeWords},
    {"leads to OOM", Other, "plain", "", kReported, kWholeWords},
    {"led to OOM", Other, "plain", "", kReported, kWholeWords},
    {"runs into OOM", Other, "plain", "", kReported, kWholeWords},
    {"run into OOM", Other, "plain", "", kReported, kWholeWords},
    {"ran into OOM", Other, "plain", "", kReported, kWholeWords},
    {"encounter OOM", Other, "plain", "", kReported, kWholeWords},
    {"encountered OOM", Other, "plain", "", kReported, kWholeWords},
    {"went OOM", Other, "plain", "", kReported, kWholeWords},
    {"goes OOM", Other, "plain", "", kReported, kWholeWords},
    {"due to OOM", Other, "plain", "", kReported, kWholeWords},
    {"got out of memory", Other, "plain", "", kReported, kWholeWords},
    {"got an out of memory", Other, "plain", "", kReported, kWholeWords},
    {"get out of memory", Other, "plain", "", kReported, kWholeWords},
    {"get an out of memory", Other, "plain", "", kReported, kWholeWords},
    {"gets out of memory", Other, "plain", "", kReported, kWholeWords},
    {"getting out of memory", Other, "plain", "", kReported, kWholeWords},
    {"hit out of memory", Other, "plain", "", kReported, kWholeWords},
    {"hits out of memory", Other, "plain", "", kReported, kWholeWords},
    {"causes out of memory", Other, "plain", "", kReported, kWholeWords},
    {"caused out of memory", Other, "plain", "", kReported, kWholeWords},
    {"leads to out of memory", Other, "plain", "", kReported, kWholeWords},
    {"led to out of memory", Other, "plain", "", kReported, kWholeWords},
    {"encounter out of memory", Other, "plain", "", kReported, kWholeWords},
    {"encountered out of memory", Other, "plain", "", kReported, kWholeWords},
    {"due to out of memory", Other, "plain", "", kReported, kWholeWords},
};

}  // namespace ullage::read::general
