// SPDX-License-Identifier: Apache-2.0

// From a text to its answer: kinds of errors that name no figures, or a limit that is not the device's. The texts are
// written here; their wordings are those of the tools' sources.

#include "check.h"

#include "ullage/read/log/log.h"

#include <gtest/gtest.h>

namespace ullage::diagnose {
namespace {

struct Case {
  const char* text;
  const char* tool;    // empty: any
  const char* cause;   // among the first three
  const char* remedy;  // empty: any
};

std::vector<Diagnosis> answers_to(const std::string& text) {
  const auto log = read::read_log(text, "text");
  return log.ok() ? sound(diagnose(*log, {"train.log", {}, {}})) : std::vector<Diagnosis>{};
}

void expect(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const std::vector<Diagnosis> all = answers_to(each.text);
    ASSERT_FALSE(all.empty()) << each.text;
    const Diagnosis& one = all[0];
    bool among = false;
    std::string ids;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, one.causes.size()); ++i) {
      among |= one.causes[i].id == each.cause;
      ids += one.causes[i].id + ' ';
    }
    EXPECT_TRUE(among) << each.cause << " is not in " << ids << "of " << each.text;
    if (*each.tool) {
      EXPECT_EQ(one.tool ? one.tool->id : "none", each.tool) << each.text;
    }
    if (*each.remedy) {
      EXPECT_TRUE(remedy(one, each.remedy)) << each.remedy << " for " << each.text;
    }
  }
}

TEST(Text, OfADriverThatDoesNotAnswerBlamesIt) {
  expect({
      {"torch.AcceleratorError: CUDA error: out of memory\nFailed to initialize NVML: Unknown Error", "torch",
       "driver_refused", "update_driver"},
      {"  File \"/home/me/run.py\", line 3, in clean\n    torch.cuda.empty_cache()\n  File "
       "\"/x/torch/cuda/memory.py\", line 222, in empty_cache\n    torch._C._cuda_emptyCache()\nRuntimeError: CUDA "
       "error: "
       "out of memory",
       "torch", "driver_refused", "update_driver"},
      {"RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "",
       "driver_refused", "update_driver"},
      {"radv/amdgpu: Not enough memory for command submission.", "", "driver_refused", ""},
  });
}

TEST(Text, OfAMachineWithOneMemoryNamesIt) {
  expect({
      {"llama_params_fit: projected to use 30000 MiB\n# Ryzen AI 9, amdgpu.gttsize=30000\nKilled (SIGKILL)",
       "llama.cpp", "unified_memory", "free_shared_memory"},
      {"NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)\nDGX Spark, while the weights were read", "",
       "unified_memory", "free_shared_memory"},
  });
}

TEST(Text, OfALimitThatIsNotTheDevicesNamesTheLimit) {
  expect({
      {"RuntimeError: [metal::malloc] Resource limit (499000) exceeded.", "mlx", "buffer_limit", "mlx_cache"},
      {"MemoryError: std::bad_alloc: out_of_memory: RMM failure at: pool_memory_resource.hpp:257: Maximum pool size "
       "exceeded",
       "rapids", "memory_fraction_cap", "rapids_parts"},
      {"PHP Fatal error: Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes)", "",
       "memory_fraction_cap", ""},
      {"GPU 0 has a total capacity of 140.00 GiB of which 12.00 MiB is free. 40.00 GiB allowed; Of the allocated "
       "memory "
       "8.00 GiB is allocated by PyTorch",
       "torch", "other_process", "end_process"},
      {"XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack", "jax",
       "not_memory", "jax_kernel"},
      {"[W] UNSUPPORTED_STATE Skipping tactic 3 due to insufficient memory on requested size of 9580055552 detected",
       "tensorrt", "library_workspace", "tensorrt_workspace"},
  });
  EXPECT_EQ(answers_to("Ran out of memory in memory space vmem").at(0).causes.size(), 1u);
}

TEST(Text, OfALibraryBesideThePoolSaysSo) {
  expect({
      {"gpu0:12:34 [0] NCCL WARN Cuda failure 2 'out of memory'", "nccl", "outside_pool", "nccl_buffers"},
      {"CUDA error: the resource allocation failed\n  current device: 0, in function cublas_handle at ggml-cuda.cu\n"
       "  cublasCreate_v2(&handle)",
       "llama.cpp", "late_library_handle", "llama_layers"},
  });
}

TEST(Text, OfOneRequestAboveWhatDevicesHaveNeedsNoCapacity) {
  expect({{"MemoryError: std::bad_alloc: out_of_memory: CUDA error (failed to allocate 90000000000 bytes) at: x.hpp",
           "rapids", "single_request_too_big", "split_request"}});
}

TEST(Text, OfACopyOfAModelNamesCopiesThatAreKept) {
  expect(
      {{"  File \"/home/me/ema.py\", line 9, in snapshot\n    self.models.append(copy.deepcopy(model))\ntorch."
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 23.68 GiB "
        "of which 20.00 MiB is free. Of the allocated memory 22.00 GiB is allocated by PyTorch, and 60.00 MiB is "
        "reserved by PyTorch but unallocated.",
        "torch", "leak_across_steps", "detach"}});
}

TEST(Text, OfAProcessThatWasEndedIsKnownInOtherWords) {
  expect({
      {"earlyoom[845]: low memory! at or below SIGTERM limits: mem 3.00%, swap 10.00%", "kernel", "host_memory", ""},
      {"The kernel kills the container (exit 137) while the Java heap is free", "java", "host_memory", "java_heap"},
      {"cc1plus: out of memory allocating 65536 bytes after a total of 131072 bytes", "", "host_memory", ""},
      {"memory allocation of 4294967296 bytes failed", "", "host_memory", ""},
      {"Error: cannot allocate vector of size 2.2 Gb", "", "host_memory", ""},
  });
}

TEST(Text, OfAServerOrTrainerGetsItsWords) {
  expect({
      {"[TM][ERROR] CUDA runtime error: out of memory /opt/lmdeploy/src/turbomind/allocator.h:246", "lmdeploy",
       "device_full", "lmdeploy_cache"},
      {"[TensorRT-LLM][ERROR] CUDA runtime error in cudaMallocAsync(ptr, n, stream): out of memory", "tensorrt-llm",
       "device_full", "trtllm_engine"},
      {"faster_whisper/transcribe.py\nRuntimeError: CUDA failed with error out of memory", "whisper", "device_full",
       "whisper_smaller"},
      {"Starting koboldcpp\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: cudaMalloc "
       "failed: out of memory",
       "koboldcpp", "device_full", "koboldcpp_layers"},
      {"accelerate launch sdxl_train_network.py --network_dim 32\ntorch.OutOfMemoryError: CUDA out of memory. Tried to "
       "allocate 20.00 MiB.",
       "sd-scripts", "device_full", "sdtrain_swap"},
      {"  File \"/x/stable-diffusion-webui-forge/backend/a.py\", line 1, in f\n    y = g(x)\ntorch.OutOfMemoryError: "
       "CUDA out of memory. Tried to allocate 20.00 MiB.",
       "webui", "device_full", "webui_offload"},
      {"  File \"/x/isaacgym/torch_utils.py\", line 7, in f\n    y = g(x)\ntorch.OutOfMemoryError: CUDA out of memory. "
       "Tried to allocate 20.00 MiB.",
       "isaac", "device_full", "isaac_envs"},
      {"WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid", "webgpu", "leak_across_steps",
       "webgpu_dispose"},
      {"Error: model requires more system memory (5.0 GiB) than is available (3.0 GiB)", "ollama", "host_memory",
       "ollama_available"},
  });
}

TEST(Text, OfAWorkerThatIsGoneSpeaksOfTheHost) {
  expect({
      {"[gw3] node down: Not properly terminated", "kernel", "host_memory", "kernel_fewer"},
      {"joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was "
       "unexpectedly terminated.",
       "", "host_memory", ""},
      {"[ERROR] Worker (pid:77) was sent SIGKILL! Perhaps out of memory?", "", "host_memory", ""},
      {"BrokenProcessPool: A process in the process pool was terminated abruptly while the future was pending.", "",
       "host_memory", ""},
  });
}

TEST(Text, OfAProgramsOwnBudgetNamesIt) {
  expect({
      {"> Java heap space", "java", "memory_fraction_cap", "java_heap"},
      {"ggml_new_object: not enough space in the context's memory pool (needed 4096, available 4000)", "llama.cpp",
       "memory_fraction_cap", "llama_table"},
      {"Unable to pin more tensors for this model as the maximum reservable memory has been reached (9000.00).",
       "webui", "host_memory", "webui_host"},
      {"RuntimeError: Insufficient VRAM in split for model and cache", "exllama", "device_full", "exllama_split"},
  });
}

TEST(Text, OfAnArrayOrPictureOnTheHostSaysSo) {
  expect({
      {"unable to allocate 7.25 GiB for an array shape (5, 194615706) and data type float", "python", "host_memory",
       "python_parts"},
      {"terminate called after throwing an instance of 'cv::Exception'\ncv::OutOfMemoryError", "", "host_memory", ""},
  });
}

TEST(Text, OfAShareOnAnotherAcceleratorSpeaksOfTheShare) {
  expect(
      {{"vllm serve some/model --gpu-memory-utilization 0.85\nRuntimeError: NPU out of memory. Tried to allocate "
        "512.00 MiB (NPU 0; 60.96 GiB total capacity; 57.10 GiB already allocated; 57.10 GiB current active; 410.00 "
        "MiB free; 57.90 GiB reserved in total by PyTorch)",
        "vllm", "utilization_share", "vllm_utilization"}});
}

TEST(Text, OfAPartlyLoadedModelSpeaksOfPinnedMemory) {
  expect(
      {{"loaded partially; 4000.00 MB usable, 4000.00 MB loaded, 2000.00 MB offloaded\n!!! Exception during "
        "processing !!! CUDA error: out of memory",
        "comfyui", "host_memory", "comfyui_pinned"}});
}

TEST(Text, OfOutputsTurnedToFloatNamesTheLogits) {
  expect(
      {{"  File \"/x/accelerate/utils/operations.py\", line 781, in _convert_to_fp32\n    return tensor.float()\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.10 GiB. GPU 0 has a total capacity of "
        "15.77 GiB of which 3.10 GiB is free.",
        "torch", "logits", ""}});
}

TEST(Text, OfPaddleMayEndEarly) {
  expect({{"9   phi::DnnWorkspaceHandle::ReallocWorkspace(unsigned long)\nOut of memory error on", "paddle",
           "device_full", "paddle_input"}});
}

TEST(Text, ThatMakesAVideoKeepsNoKeysAndValues) {
  const std::vector<Diagnosis> all = answers_to(
      "  File \"/home/me/app.py\", line 9, in generate_video\n    frames = pipe(prompt)\ntorch.OutOfMemoryError: CUDA "
      "out "
      "of memory. Tried to allocate 20.00 MiB.");
  ASSERT_FALSE(all.empty());
  EXPECT_FALSE(cause(all[0], "kv_cache"));
}

TEST(Text, ThatExplainsTheKernelsKillerIsNoKill) {
  EXPECT_TRUE(answers_to("Out of memory: Killed process is an error of the Linux kernel's OOM killer.").empty());
  EXPECT_FALSE(answers_to("Out of memory: Killed process 4711 (python) total-vm:9kB, anon-rss:8kB").empty());
}

TEST(Text, QuotedAsCommentsIsRead) {
  EXPECT_FALSE(answers_to("# [00:00, ?it/s]ERROR: Unexpected bus error encountered in worker.").empty());
  EXPECT_TRUE(answers_to("    # the worker is killed by signal: Bus error here\n    x = 1").empty());
}

TEST(Text, OfVllmsCacheDoesNotSpeakOfTheStart) {
  const std::vector<Diagnosis> all = answers_to(
      "ValueError: To serve at least one request with the model's max seq len (32768), 24.00 GiB KV cache is needed, "
      "which is larger than the available KV cache memory (3.00 GiB).");
  ASSERT_FALSE(all.empty());
  const Cause* found = cause(all[0], "utilization_share");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evidence[0].find("from the start"), std::string::npos) << found->evidence[0];
}

}  // namespace
}  // namespace ullage::diagnose
