// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/message_forms.h"

#include "ullage/read/log/message_clauses.h"
#include "ullage/read/log/message_general.h"
#include "ullage/read/log/message_pattern.h"

#include <algorithm>
#include <array>

namespace ullage::read {
namespace {

using enum trace::Teller;
using trace::Limit;

// A row is a Lead: pattern, who prints it, form, versions of PyTorch, clauses, conditions on its place, whose limit.
// message_pattern.h explains $, #, % and the other gaps of a pattern.
constexpr Lead kNamedLeads[] = {
    // PyTorch's pools. Some messages lack their beginning: pasted by hand, or cut off where the log begins.
    {"CUDA out of memory", Cuda, "cuda", "", kPool},
    {"HIP out of memory", Hip, "hip", "", kPool},
    {"XPU out of memory", Xpu, "xpu", "", kPool},
    {"Current platform can NOT allocate memory block with size larger than", Xpu, "xpu", "", kPool},
    {"NPU out of memory", Npu, "npu", "", kPool},
    {"CUDA out-of-memory error", Cuda, "cuda", "", kPool},
    {"torch.cuda.OutOfMemoryError", Cuda, "cuda", "", kPool, kAtLineEnd | kNoColonBehind},
    {"torch.OutOfMemoryError", Cuda, "cuda", "", kPool, kAtLineEnd | kNoColonBehind},
    {"MPS backend out of memory", Mps, "mps", "", kMps},
    {"MUSA out of memory", Other, "other-pool", "", kPool},
    {"MLU out of memory", Other, "other-pool", "", kPool},
    {"HPU out of memory", Other, "other-pool", "", kPool},
    {"PrivateUse1 out of memory", Other, "other-pool", "", kPool},
    {"Tried to allocate $ on private pool", Mps, "mps", "", kMps, kTail},
    {"Tried to allocate $ on shared pool", Mps, "mps", "", kMps, kTail},
    {"Tried to allocate $ (NPU", Npu, "npu", "", kPool, kTail},
    {"Tried to allocate more than 1EB memory", Cuda, "cuda", "", kPool, kTail},
    {"Tried to allocate $ (GPU", Cuda, "cuda", "", kPool, kTail},
    {"Tried to allocate $. GPU", Cuda, "cuda", "", kPool, kTail},
    {"Tried to allocate $ GPU", Cuda, "cuda", "", kPool, kTail},
    {"(GPU #; $ total capacity", Cuda, "cuda", "", kPool, kTail},
    {"GPU # has a total capacity of", Cuda, "cuda", "", kPool, kTail},
    {"GPU # has a total capacty of", Cuda, "cuda", "", kPool, kTail},
    {"Of the allocated memory $ is allocated by PyTorch", Cuda, "cuda", "", kPool, kTail},
    {"Allocation on device % would exceed allowed memory", CudaMallocAsync, "cuda-malloc-async", "2.0 or later",
     kMallocAsync},
    {"Allocation on device would exceed allowed memory", CudaMallocAsync, "cuda-malloc-async", "2.0 or later",
     kMallocAsync},
    {"OutOfMemoryError: Allocation on device", CudaMallocAsync, "cuda-malloc-async", "2.0 or later", kMallocAsync},
    {"exception_message\": \"Allocation on device", CudaMallocAsync, "cuda-malloc-async", "2.0 or later", kMallocAsync},
    {"during processing !!! Allocation on device", CudaMallocAsync, "cuda-malloc-async", "2.0 or later", kMallocAsync},
    {"Exception Message:\\*\\* Allocation on device", CudaMallocAsync, "cuda-malloc-async", "2.0 or later",
     kMallocAsync},
    {"Exception Message: Allocation on device", CudaMallocAsync, "cuda-malloc-async", "2.0 or later", kMallocAsync},
    {"Allocation on device", CudaMallocAsync, "cuda-malloc-async", "2.0 or later", kMallocAsync,
     kAtLineBegin | kOrColonBefore | kAtLineEnd},
    {"would exceed allowed memory", CudaMallocAsync, "cuda-malloc-async", "2.0 or later", kMallocAsync, kTail},
    {"Invalid buffer size:", Metal, "metal", "", kMetal},

    // A call outside the pool that the driver refused.
    {"THCudaCheck FAIL file=", CudaDriver, "cuda-error-2", "0.1 to 1.5", kDriver, kWithOutOfMemory},
    {"cuda runtime error (2) : out of memory", CudaDriver, "cuda-error-2", "0.1 to 1.5", kDriver},
    {"cuda runtime error (2)", CudaDriver, "cuda-error-2", "0.1 to 1.5", kDriver},
    {"triple_chevron_launcher::launch(): out of memory", CudaDriver, "cuda-thrust", "0.3 or 0.4", kDriver},
    {"CUDA error: out of memory", CudaDriver, "cuda-error", "", kDriver},
    {"CUDA driver error: out of memory", CudaDriver, "cuda-error", "2.0 or later", kDriver},
    {"ROCm error: out of memory", CudaDriver, "hip-error", "", kDriver},
    {"HIP error: out of memory", CudaDriver, "hip-error", "", kDriver},
    {"cudaErrorMemoryAllocation", CudaDriver, "cuda-error-name", "", kDriver},
    {"CUDA_ERROR_OUT_OF_MEMORY", CudaDriver, "cuda-error-name", "", kDriver},
    {"hipErrorOutOfMemory", CudaDriver, "hip-error-name", "", kDriver},
    {"UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", Xpu, "xpu-driver", "", kDriver},
    {"UR_RESULT_ERROR_OUT_OF_RESOURCES", Xpu, "xpu-driver", "", kDriver},

    // Of CTranslate2, SYCL, ROCm's runtime, NVIDIA's kernel module, CUDA.jl, OpenCL, Unreal and Blender.
    {"CUDA failed with error out of memory", CudaDriver, "ctranslate2", "", {}},
    {"can't allocate | Bytes of memory on device", Xpu, "xpu-driver", "", kGgml},
    {"BlockAllocator::alloc failed", CudaDriver, "hsa-error", "", {}},
    {"Out of memory [NV_ERR_NO_MEMORY]", Other, "nvrm", "", {}},
    {"NV_ERR_NO_MEMORY", Other, "nvrm", "", {}},
    {"Out of GPU memory trying to allocate $", Other, "cuda-julia", "", kCaller},
    {"CL_MEM_OBJECT_ALLOCATION_FAILURE", Other, "opencl", "", {}},
    {"Out of video memory trying to allocate", Other, "graphics", "", {}},
    {"System is out of GPU memory", Other, "graphics", "", {}},

    {"UR_RESULT_ERROR_OUT_OF_HOST_MEMORY", Cpu, "xpu-host", "", {}},
    {"ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", Xpu, "xpu-driver", "", kDriver},
    {"ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY", Cpu, "xpu-host", "", {}},

    // Backends that are not PyTorch's.
    {"[METAL] Command buffer execution failed: Insufficient Memory", Other, "metal-insufficient", "", {}},
    {"kIOGPUCommandBufferCallbackErrorOutOfMemory", Other, "metal-insufficient", "", {}},
    {"[metal::malloc] Attempting to allocate $", Metal, "metal-malloc", "", kMetalMalloc},
    {"but metal_cap ceiling is $", Other, "metal-ceiling", "", kMetalCeiling, 0, Limit::Program},
    {"[metal::malloc] Resource limit (", Other, "metal-resources", "", {}, 0, Limit::Buffer},
    {"WebGPU validation failed. [Invalid Buffer", Other, "webgpu-invalid", "", {}},
    {"Not enough memory for command submission", Other, "vulkan-submit", "", {}},
    {"exceeds the max buffer size limit", Other, "webgpu-buffer", "", {}, 0, Limit::Buffer},
    {"is larger than the maximum binding size", Other, "webgpu-buffer", "", {}, 0, Limit::Buffer},
    {"Requested buffer size exceeds device", Other, "vulkan-buffer", "", kGgml, 0, Limit::Buffer},
    {"Device memory allocation of size | failed", Other, "vulkan", "", kGgml},
    {"is too large for params buffer: |", Other, "ggml-params-buffer", "", kGgml, 0, Limit::Buffer},
    {"vkAllocateMemory failed", Other, "vulkan", "", {}},
    {"VK_ERROR_OUT_OF_DEVICE_MEMORY", Other, "vulkan", "", {}},
    {"ErrorOutOfDeviceMemory", Other, "vulkan", "", {}},
    {"VK_ERROR_OUT_OF_HOST_MEMORY", Cpu, "vulkan-host", "", {}},
    {"ggml_cuda_host_malloc: failed to allocate $ of pinned memory", Cpu, "ggml-pinned", "", kPinned},
    {"ggml_gallocr_reserve_n: failed to allocate", Other, "ggml", "", kGgml},
    {"ggml_gallocr_reserve_n_impl: failed to allocate", Other, "ggml", "", kGgml},
    {"alloc_tensor_range: failed to allocate", Other, "ggml", "", kGgml},
    {"failed to allocate buffer for kv cache", Other, "ggml", "", {}},
    {"failed to allocate buffer, size = $", Other, "ggml", "", kGgml},
    {"unable to allocate backend buffer", Other, "ggml", "", {}},
    {"ggml_aligned_malloc: insufficient memory (attempted to allocate $)", Cpu, "ggml-host", "", kGgml},
    {"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate", Cpu, "ggml-host", "", kGgml},
    {"Failed to allocate pinned memory", Cpu, "ggml-pinned", "", {}},
    {"ErrorOutOfHostMemory", Cpu, "vulkan-host", "", {}},
    {"failed to allocate compute", Other, "ggml", "", {}},
    // ggml's table of tensors, whose size the program states.
    {"not enough space in the context's memory pool", Other, "ggml-context", "", {}, 0, Limit::Program},
    {"Insufficient VRAM in split", Other, "exllama-split", "", {}},
    {"Insufficient VRAM", Other, "insufficient-vram", "", {}},
    {"not enough GPU video memory", Other, "directml", "", {}},
    {"out of resource: shared memory", Other, "on-chip-memory", "", {}},
    // A TPU core's own memories; "hbm" is the device's.
    {"Ran out of memory in memory space vmem", Other, "on-chip-tpu", "", {}},
    {"Ran out of memory in memory space smem", Other, "on-chip-tpu", "", {}},
    {"cudaMalloc failed: out of memory", CudaDriver, "cuda-malloc", "", kCaller},
    {"ggml_backend_cuda_buffer_type_alloc_buffer: allocating", CudaDriver, "cuda-malloc", "", kCaller},

    // Libraries outside the pool: they allocate when they start, and report a failure in their own words.
    {"CUBLAS_STATUS_ALLOC_FAILED", Cublas, "cublas-alloc", "", {}},
    {"CUBLAS_STATUS_NOT_INITIALIZED", Cublas, "cublas-not-initialized", "", {}},
    {"CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate", Cublas, "cublas-create", "", {}},
    {"HIPBLAS_STATUS_ALLOC_FAILED", Cublas, "cublas-alloc", "", {}},
    // What cublasGetStatusString() says, as ggml prints it.
    {"CUDA error: the resource allocation failed", Cublas, "cublas-alloc", "", {}},
    {"CUDA error: the library was not initialized", Cublas, "cublas-not-initialized", "", {}},
    {"CUDNN_STATUS_ALLOC_FAILED", Cudnn, "cudnn-alloc", "", {}},
    {"CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", Cudnn, "cudnn-alloc", "", {}},
    {"CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", Cudnn, "cudnn-host-alloc", "", {}},
    {"CUDNN_STATUS_NOT_INITIALIZED", Cudnn, "cudnn-not-initialized", "", {}},
    {"CUDNN_STATUS_INTERNAL_ERROR", Cudnn, "cudnn-internal", "", {}},
    {"Unable to find a valid cuDNN algorithm to run", Cudnn, "cudnn-no-algorithm", "1.3 to 1.13", {}},
    {"was unable to find an engine to execute this computation", Cudnn, "cudnn-no-engine", "1.13 or later", {}},
    {"CUSOLVER_STATUS_ALLOC_FAILED", Cusolver, "cusolver-alloc", "", {}},
    {"CUSOLVER_STATUS_NOT_INITIALIZED", Cusolver, "cusolver-not-initialized", "", {}},
    {"CUSOLVER_STATUS_INTERNAL_ERROR when calling `cusolverDnCreate", Cusolver, "cusolver-create", "", {}},
    {"CUSPARSE_STATUS_ALLOC_FAILED", Cusparse, "cusparse-alloc", "", {}},
    {"CUSPARSE_STATUS_NOT_INITIALIZED", Cusparse, "cusparse-not-initialized", "", {}},
    {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", Cusparse, "cusparse-resources", "", {}},
    {"CUFFT_ALLOC_FAILED", Cufft, "cufft-alloc", "", {}},
    {"MAGMA_ERR_DEVICE_ALLOC", Magma, "magma-device", "", {}},
    {"MAGMA_ERR_HOST_ALLOC", Magma, "magma-host", "", {}},
    {"magma: cannot allocate memory on GPU device", Magma, "magma-device", "", {}},
    {"MAGMA: could not allocate", Magma, "magma-device", "", {}},
    {"CURAND_STATUS_ALLOCATION_FAILED", Other, "curand-alloc", "", {}},
    {"Failed to CUDA calloc $", Nccl, "nccl", "", kNccl},
    {"Failed to CUDA calloc async $", Nccl, "nccl", "", kNccl},
    {"NCCL WARN Cuda failure 'out of memory'", Nccl, "nccl", "", {}},
    {"NCCL WARN Cuda failure % 'out of memory'", Nccl, "nccl", "", {}},
    {"Cuda failure 'out of memory'", Nccl, "nccl", "", {}},
    {"Cuda failure % 'out of memory'", Nccl, "nccl", "", {}},
    {"Error while creating shared memory segment /dev/shm/nccl", SharedMemory, "nccl-shm", "", kCaller},
    {"NCCL WARN Call to posix_fallocate failed", SharedMemory, "nccl-shm", "", {}},

    // The machine's memory.
    {"posix_memalign(\\&data, gAlignment, nbytes) == 0. 12 vs 0", Cpu, "cpu", "0.4 to 1.0", kCpu},
    {"failed to alloc $ on host", Cpu, "tensorflow-host", "", kTfHost},
    {"DefaultCPUAllocator: can't allocate memory", Cpu, "cpu", "", kCpu},
    {"DefaultCPUAllocator: not enough memory", Cpu, "cpu-windows", "", kCpu},
    {"Torch: not enough memory", Cpu, "cpu-torch7", "0.1 to 1.0", kCpu},
    {"not enough memory: you tried to allocate", Cpu, "cpu-windows", "", kCpu},
    {"you tried to allocate $", Cpu, "cpu", "", kCpu, kTail},
    {"Unable to allocate $ for an array with shape", Cpu, "numpy", "", kHost},
    {"Unable to allocate $ for an array", Cpu, "numpy", "", kHost},
    {"cv::OutOfMemoryError", Cpu, "host-alloc", "", {}},
    {"Unable to pin more tensors", Cpu, "pinned-budget", "", {}},
    {"Unable to allocate array with shape", Cpu, "numpy", "", kHost},
    // Thrust and RMM throw C++'s bad_alloc for a card's memory, and Python sees a MemoryError.
    {"MemoryError: bad allocation: cudaErrorMemoryAllocation", CudaDriver, "cuda-thrust", "", kDriver, kAtLineBegin},
    {"MemoryError: std::bad_alloc: out_of_memory: CUDA error", CudaDriver, "cuda-rmm", "", kRmm, kAtLineBegin},
    {"std::bad_alloc: out_of_memory: CUDA error", CudaDriver, "cuda-rmm", "", kRmm},
    {"MemoryError: std::bad_alloc: out_of_memory: RMM failure", CudaDriver, "cuda-rmm-pool", "", kRmm, kAtLineBegin},
    {"std::bad_alloc: out_of_memory: RMM failure", CudaDriver, "cuda-rmm-pool", "", kRmm},
    {"bad allocation: cudaErrorMemoryAllocation", CudaDriver, "cuda-thrust", "", kDriver},
    {"std::bad_alloc", Cpu, "bad-alloc", "", {}},
    {"[Errno 12] Cannot allocate memory", Cpu, "errno-12", "", {}},
    {"Cannot allocate memory (os error 12)", Cpu, "errno-12", "", {}},
    {"fork: Cannot allocate memory", Cpu, "errno-12", "", {}},
    {"Fail to alloc memory of | size", Cpu, "paddle-host", "", kPaddle},
    // Rust, R, gcc, Go, .NET, PHP; ComfyUI's pinned buffers.
    {"memory allocation of $ failed", Cpu, "host-alloc", "", kAllocation},
    {"cannot allocate vector of size +", Cpu, "r-vector", "", kAllocation},
    {"out of memory allocating $", Cpu, "host-alloc", "", kAllocation},
    {"virtual memory exhausted: Cannot allocate memory", Cpu, "errno-12", "", {}},
    {"fatal error: runtime: out of memory", Cpu, "host-alloc", "", {}},
    {"fatal error: runtime: cannot allocate memory", Cpu, "host-alloc", "", {}},
    {"System.OutOfMemoryException", Cpu, "host-alloc", "", {}},
    {"Allowed memory size of $ exhausted", Cpu, "php-limit", "", {}, 0, Limit::Heap},
    {"HostBuffer.read_file_slice failed", Cpu, "pinned-buffer", "", {}},
    {"MemoryError", Cpu, "memory-error", "", kHost, kAtLineBegin | kAtLineEnd | kOrColonBehind},
    {"MemoryError in ", Cpu, "memory-error", "", kHost, kAtLineBegin},
    // DuckDB has a limit of its own (memory_limit); only "(bad allocation)" and a failed block are the machine's.
    {"Out of Memory Error: Failed to allocate block of |", Cpu, "duckdb", "", kDuckDb},
    {"Out of Memory Error: failed to allocate data of size $", Cpu, "duckdb-cap", "", kDuckDb, 0, Limit::Program},
    {"Out of Memory Error: could not allocate block of size $", Cpu, "duckdb-cap", "", kDuckDb, 0, Limit::Program},
    {"Out of Memory Error: failed to pin block of size $", Cpu, "duckdb-cap", "", kDuckDb, 0, Limit::Program},
    {"Out of Memory Error: Failed to change memory limit to", Cpu, "duckdb-cap", "", {}, 0, Limit::Program},
    // ClickHouse's MemoryTracker: the server's, a user's or a query's own limit.
    {"memory limit exceeded: would use ~", Cpu, "clickhouse-cap", "", kClickHouse, 0, Limit::Program},
    {"Memory limit (total) exceeded: would use ~", Cpu, "clickhouse-cap", "", kClickHouse, 0, Limit::Program},
    {"Memory limit (for query) exceeded: would use ~", Cpu, "clickhouse-cap", "", kClickHouse, 0, Limit::Program},
    {"Memory limit (for user) exceeded: would use ~", Cpu, "clickhouse-cap", "", kClickHouse, 0, Limit::Program},
    {"unable to mmap $ from file </torch", SharedMemory, "torch-shm", "", kHost},
    {"unable to mmap $ from file", Cpu, "mmap", "", kHost},
    {"unable to write to file </torch", SharedMemory, "torch-shm", "", {}},
    {"[Errno 28] No space left on device", SharedMemory, "errno-28", "", {}},
    {"could not resize shared memory segment", SharedMemory, "posix-shm", "", {}},
    {"Unexpected bus error encountered in worker", SharedMemory, "dataloader-bus-error", "", {}},
    {"is killed by signal: Bus error", SharedMemory, "dataloader-bus-error", "", {}},
    {"insufficient shared memory (shm)", SharedMemory, "dataloader-bus-error", "", {}},
    {"Bus error (core dumped)", SharedMemory, "bus-error", "", {}},
    {"model requires more system memory ($) than is available ($)", Cpu, "ollama-system", "", kOllama},
    {"model requires more system memory", Cpu, "ollama-system", "", {}},
    {"process has terminated: signal: killed", KernelKill, "ollama-killed", "", {}},
    {"llama runner process no longer running: -1", KernelKill, "ollama-killed", "", {}},
    {"Array buffer allocation failed", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"RangeError: offset is out of bounds", Cpu, "wasm-heap", "", {}, 0, Limit::Heap},
    {"ERR_WORKER_OUT_OF_MEMORY", Cpu, "node-heap", "", {}, 0, Limit::Heap},
    {"JS heap out of memory", Cpu, "node-heap", "", {}, 0, Limit::Heap},
    {"JavaScript heap out of memory", Cpu, "node-heap", "", {}, 0, Limit::Heap},
    {"java.lang.OutOfMemoryError", Cpu, "java-heap", "", {}, 0, Limit::Heap},
    {"Out of memory. Java heap space", Cpu, "java-heap", "", {}, 0, Limit::Heap},
    {"GC overhead limit exceeded", Cpu, "java-heap", "", {}, 0, Limit::Heap},
    {"Java heap space", Cpu, "java-heap", "", {}, kAtLineBegin | kAtLineEnd, Limit::Heap},
    {"JVM heap space is exhausted", Cpu, "java-heap", "", {}, 0, Limit::Heap},
    {"insufficient memory for the Java Runtime Environment", Cpu, "java-native", "", {}},
    {"(os error 1455)", Cpu, "windows-page-file", "", {}},
    {"due to insufficient system resources", Cpu, "lmstudio-guardrails", "", {}},
    {"Not enough resources to load the model", Cpu, "lmstudio-guardrails", "", {}},
    {"The paging file is too small", Cpu, "windows-page-file", "", {}},
    {"[WinError 1455]", Cpu, "windows-page-file", "", {}},

    // The kernel, a container's limit or a job scheduler ended the process.
    {"was killed due to the node running low on memory", KernelKill, "ray-low-memory", "", {}},
    {"killed due to memory pressure (OOM)", KernelKill, "ray-memory-pressure", "", {}},
    {"killed by SIGKILL by OOM killer due to high memory usage", KernelKill, "maybe-killed", "", {}},
    {"Memory limit exceeded (+)", KernelKill, "hosting-limit", "", kHosting},
    {"Ran out of memory (used over +)", KernelKill, "hosting-limit", "", kHosting},
    {"Memory limit of % M", KernelKill, "hosting-limit", "", kHosting},
    {"(Memory quota exceeded)", KernelKill, "hosting-limit", "", {}},
    {"(Memory quota vastly exceeded)", KernelKill, "hosting-limit", "", {}},
    {"tried to allocate more memory than is available. It has restarted", KernelKill, "hosting-limit", "", {}},
    {"Runtime exited with error: signal: killed", KernelKill, "hosting-killed", "", {}},
    {"killed by the OOM killer", KernelKill, "kernel-unit", "", {}},
    {"Failed with result 'oom-kill'", KernelKill, "kernel-unit", "", {}},
    {"container oom", KernelKill, "container-oom", "", {}, kAtLineBegin},
    {"crashed after using all available RAM", KernelKill, "container-ram", "", {}},
    {"appears to have died", KernelKill, "notebook-died", "", {}},
    {"Kernel crashed while executing code", KernelKill, "notebook-died", "", {}},
    {"return code*-9", KernelKill, "signal-9", "", {}, kNoDigitBehind},
    {"Exceeded job memory limit", KernelKill, "slurm-limit", "", {}},
    {"Exceeded step memory limit", KernelKill, "slurm-limit", "", {}},
    // With the number of the process: articles about the kernel's killer quote the words without one.
    {"Memory cgroup out of memory: Kill process %", KernelKill, "kernel-cgroup", "", kKernel},
    {"Memory cgroup out of memory: Killed process %", KernelKill, "kernel-cgroup", "", kKernel},
    {"Out of memory: Kill process %", KernelKill, "kernel", "", kKernel},
    {"Out of memory: Killed process %", KernelKill, "kernel", "", kKernel},
    {"low memory! at or below SIG", KernelKill, "kernel-earlyoom", "", {}},
    {"due to memory pressure for", KernelKill, "kernel-oomd", "", {}},
    {"systemd-oomd killed", KernelKill, "kernel-oomd", "", {}},
    {"Killed signal terminated program", KernelKill, "killed", "", {}},
    // pytest-xdist, joblib, concurrent.futures, Gunicorn: a worker ended without a word.
    {"node down: Not properly terminated", KernelKill, "worker-gone", "", {}},
    {"managed by the executor was unexpectedly terminated", KernelKill, "worker-gone", "", {}},
    {"process pool was terminated abruptly", KernelKill, "worker-gone", "", {}},
    {"was sent SIGKILL", KernelKill, "worker-killed", "", {}},
    {"Container killed by YARN for exceeding", KernelKill, "container-yarn", "", {}},
    {"oom-kill:constraint=", KernelKill, "kernel-oom-kill", "", kKernel},
    {"invoked oom-killer", KernelKill, "kernel-invoked", "", {}},
    {"oom_reaper: reaped process", KernelKill, "kernel-reaped", "", {}},
    {"oom-kill event", KernelKill, "slurm-oom-kill", "", {}},
    {"oom_kill event", KernelKill, "slurm-oom-kill", "", {}},
    {"task %: Out Of Memory", KernelKill, "slurm-oom-kill", "", {}},
    {"TERM_MEMLIMIT", KernelKill, "lsf-limit", "", {}},
    {"OOMKilled", KernelKill, "container-oom-killed", "", {}},
    {"is killed by signal: Killed", KernelKill, "dataloader-killed", "", {}},
    {"exited unexpectedly with exit code 137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"DataLoader worker (pid(s) ", KernelKill, "dataloader-exited", "", {}},
    {"with code*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"exit code*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"exit status*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"exit*137", KernelKill, "exit-137", "", {}, kNoDigitBehind},
    {"exit code*-9", KernelKill, "signal-9", "", {}, kNoDigitBehind},
    {"exit status*-9", KernelKill, "signal-9", "", {}, kNoDigitBehind},
    {"Signal 9 (SIGKILL)", KernelKill, "signal-9", "", {}},
    {"<Signals.SIGKILL: 9>", KernelKill, "signal-9", "", {}},
    {"exited on signal 9 (Killed)", KernelKill, "signal-9", "", {}},
    {"Killed", KernelKill, "killed", "", {}, kAtLineBegin | kAtLineEnd},
    {"Killed (SIGKILL", KernelKill, "killed", "", {}, kAtLineBegin},
    {"zsh: killed", KernelKill, "killed", "", {}, kAtLineBegin},
    {"line %: % Killed", KernelKill, "killed", "", {}},

    // Programs above PyTorch, and others.
    {"Free memory on device cuda:# (&/$) on startup", Vllm, "vllm-startup", "", kVllm},
    {"Free memory on device (&/$) on startup", Vllm, "vllm-startup", "", kVllm},
    {"on startup is less than desired GPU memory utilization", Vllm, "vllm-startup", "", kVllm, kTail},
    {"desired GPU memory utilization", Vllm, "vllm-startup", "", kVllm, kTail},
    {"No available memory for the cache blocks", Vllm, "vllm-no-cache", "", {}},
    {"larger than the maximum number of tokens that can be stored in KV cache", Vllm, "vllm-cache-too-small", "", {}},
    {"To serve at least one request with the models's max seq len", Vllm, "vllm-cache-too-small", "", kVllm},
    {"To serve at least one request with the model's max seq len", Vllm, "vllm-cache-too-small", "", kVllm},
    {"exceeds available Mamba cache blocks", Vllm, "vllm-mamba-cache", "", {}},
    {"Not enough memory to allocate KV cache", Other, "sglang-startup", "", {}},
    {"not enough Metal memory for KV cache", Vllm, "vllm-metal", "", {}},
    {"out of memory within the budget:", Ullage, "ullage", "", kUllage},
    {"is below what the process needs before the first tensor", Ullage, "ullage-start", "", kUllage},
    {"Resource exhausted: OOM when allocating", TensorFlow, "tensorflow", "", kTensorFlow},
    {"RESOURCE_EXHAUSTED: OOM when allocating", TensorFlow, "tensorflow", "", kTensorFlow},
    {"ran out of memory trying to allocate $", TensorFlow, "tensorflow-bfc", "", kTfBfc},
    {"Limit: | InUse: |", TensorFlow, "tensorflow-stats", "", kTfStats, kAtLineBegin},
    {"OOM when allocating tensor", TensorFlow, "tensorflow", "", kTensorFlow},
    {"RESOURCE_EXHAUSTED: Error allocating device buffer", Jax, "jax", "", kXla},
    {"RESOURCE_EXHAUSTED: Out of memory", Jax, "jax", "", kXla},
    {"RESOURCE_EXHAUSTED: Failed to allocate", Jax, "jax", "", kXla},
    {"Resource exhausted: Out of memory", Jax, "jax", "", kXla},
    {"Resource exhausted: Failed to allocate", Jax, "jax", "", kXla},
    {"Ran out of memory in memory space hbm", Jax, "jax-hbm", "", kXla},
    {"Error allocating device buffer: Attempting to allocate +", Jax, "jax", "", kXla},
    {"Out of memory while trying to allocate $", Jax, "jax", "", kXla},
    {"Out of memory error on GPU #. Cannot allocate $ memory", Other, "paddle", "", kPaddle},
    {"Out of memory error on", Other, "paddle", "", kPaddle, kAtLineBegin},
    {"OutOfMemoryError: Out of memory allocating $", Other, "cupy", "", kCaller},
    {"Requested amount of GPU memory ($) could not be allocated", Other, "tensorrt", "", kCaller},
    {"due to insufficient memory on requested size of |", Other, "tensorrt-tactic", "", kCaller},
    {"Could not find any implementation for node", Other, "tensorrt-no-implementation", "", {}},
    {"Failed to allocate memory for requested buffer of size", Other, "onnxruntime", "", kOnnx},
    {"Available memory of % is smaller than requested bytes of |", Other, "onnxruntime-arena", "", kOnnx, 0,
     Limit::Arena},
    {"Not enough memory. Please try to increase --mem-fraction-static", Other, "sglang-startup", "", {}},
    {"Got an OOM, unloading all loaded models", Other, "comfyui", "", {}},
    {"LLVM ERROR: out of memory", Cpu, "host-alloc", "", {}},
    {"out of memory", Other, "other", "", kGeneral, kWithError | kNoName},
};

// A row has the lead's form, the marks that a message must have, the exact form and the versions of PyTorch.
constexpr Version kVersions[] = {
    {"cuda", kBeyondOneEb, "cuda-1eb", "1.6 or later"},
    {"cuda", kCached, "cuda-1.0", "1.0 to 1.3"},
    {"cuda", kExpandHint | kNewSetting, "cuda-2.9", "2.9 or later"},
    {"cuda", kExpandHint | kTorchClass, "cuda-2.5", "2.5 to 2.8"},
    {"cuda", kExpandHint | kPrivatePools, "cuda-2.5", "2.5 to 2.8"},
    {"cuda", kExpandHint | kCudaClass, "cuda-2.2", "2.2 to 2.4"},
    {"cuda", kExpandHint, "cuda-2.2", "2.2 to 2.8"},
    {"cuda", kMisspelt, "cuda-2.1", "2.1"},
    {"cuda", kCapacityOf | kSplitHint, "cuda-2.1", "2.1 or 2.2 (a build between them)"},
    {"cuda", kCapacityOf | kTorchClass, "cuda-2.5", "2.5 or later"},
    {"cuda", kCapacityOf | kPrivatePools, "cuda-2.5", "2.5 or later"},
    {"cuda", kCapacityOf | kCudaClass, "cuda-2.2", "2.2 to 2.4"},
    {"cuda", kCapacityOf, "cuda-2.2", "2.2 or later"},
    {"cuda", kReservedTotal | kCudaClass, "cuda-1.10", "1.13 or 2.0"},
    {"cuda", kReservedTotal | kSplitHint, "cuda-1.10", "1.10 to 2.0"},
    {"cuda", kReservedTotal, "cuda-1.4", "1.4 to 1.9, or to 2.0 where its hint is left out"},
    {"cuda", kTorchClass, "cuda-short", "2.5 or later"},
    {"cuda", kCudaClass, "cuda-short", "1.13 to 2.4"},
    {"cuda", 0, "cuda-short", ""},
    {"hip", kBeyondOneEb, "hip-1eb", "1.6 or later"},
    {"hip", kCached, "hip-1.0", "1.0 to 1.3"},
    {"hip", kExpandHint | kNewSetting, "hip-2.9", "2.9 or later"},
    {"hip", kExpandHint | kHipSetting | kTorchClass, "hip-2.5", "2.5 to 2.8"},
    {"hip", kExpandHint | kHipSetting, "hip-2.2", "2.2 to 2.8"},
    {"hip", kExpandHint | kTorchClass, "hip-2.5", "2.5 or later"},
    {"hip", kExpandHint, "hip-2.2", "2.2 or later"},
    {"hip", kMisspelt, "hip-2.1", "2.1"},
    {"hip", kCapacityOf, "hip-2.2", "2.1 or later"},
    {"hip", kReservedTotal | kSplitHint, "hip-1.10", "1.10 to 2.0"},
    {"hip", kReservedTotal, "hip-1.4", "1.4 to 2.0"},
    {"hip", 0, "hip-short", ""},
    {"xpu", kReservedTotal, "xpu-ipex", "2.4 or earlier, with Intel's extension"},
    {"xpu", kCapacityOf | kAllowed, "xpu-allowed", "2.10 or later"},
    {"xpu", kCapacityOf | kFree, "xpu-free", "2.9 or later"},
    {"xpu", kCapacityOf, "xpu-no-free", "2.5 to 2.8"},
    {"xpu", 0, "xpu-short", ""},
    {"npu", kReservedTotal, "npu", "with torch_npu"},
    {"npu", 0, "npu-short", "with torch_npu"},
    {"mps", kDecimalLabel, "mps-gb", "1.12 to 2.6"},
    {"mps", kRequested, "mps-gib", "2.7 or later"},
    {"mps", 0, "mps-short", ""},
    {"metal", kDecimalLabel, "metal-gb", "1.12 to 2.6"},
    {"metal", 0, "metal-gib", "2.7 or later"},
};

constexpr auto kLeads = [] {
  std::array<Lead, std::size(kNamedLeads) + std::size(general::kLeads)> all;
  std::copy(std::begin(general::kLeads), std::end(general::kLeads),
            std::copy(std::begin(kNamedLeads), std::end(kNamedLeads), all.begin()));
  return all;
}();

constexpr int kLeadCount = static_cast<int>(std::size(kLeads));

// Chains of the leads with the same first letter, made at compile time, because leads are tried at each letter of a
// text.
struct Chains {
  std::array<std::int16_t, 256> first{};
  std::array<std::int16_t, kLeadCount> next{};
  std::array<char, kLeadCount> second{};  // each lead's second letter; 0: a gap
};

constexpr char second_letter_of(std::string_view pattern) {
  const char c = pattern[pattern[1] == ' ' ? 2 : 1];
  return is_gap(c) ? '\0' : folded(c);
}

constexpr Chains chain_leads() {
  Chains chains;
  chains.first.fill(-1);
  for (int i = kLeadCount - 1; i >= 0; --i) {
    const auto letter = static_cast<unsigned char>(folded(kLeads[i].pattern.front()));
    chains.second[static_cast<std::size_t>(i)] = second_letter_of(kLeads[i].pattern);
    chains.next[static_cast<std::size_t>(i)] = chains.first[letter];
    chains.first[letter] = static_cast<std::int16_t>(i);
  }
  return chains;
}

constexpr Chains kChains = chain_leads();

int passing(int lead, char second) {
  while (lead >= 0 && kChains.second[static_cast<std::size_t>(lead)] != second &&
         kChains.second[static_cast<std::size_t>(lead)] != '\0') {
    lead = kChains.next[static_cast<std::size_t>(lead)];
  }
  return lead;
}

}  // namespace

std::span<const Lead> leads() { return kLeads; }

int first_lead(char letter, char second) { return passing(kChains.first[static_cast<unsigned char>(letter)], second); }
int next_lead(int lead, char second) { return passing(kChains.next[static_cast<std::size_t>(lead)], second); }
std::span<const Version> versions() { return kVersions; }

}  // namespace ullage::read
