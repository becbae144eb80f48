// SPDX-License-Identifier: Apache-2.0

// Finds the tool in real texts of each (tests/data/messages/tools.jsonl), and gives advice in its words.

#include "check.h"

#include "real.h"
#include "recordings.h"
#include "ullage/diagnose/tools.h"
#include "ullage/read/log/log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

namespace ullage::diagnose {
namespace {

using nlohmann::json;

std::vector<json> rows_of(const char* file) {
  std::vector<json> rows;
  std::istringstream text(text_of(data_folder() / "messages" / file));
  for (std::string line; std::getline(text, line);) rows.push_back(json::parse(line));
  return rows;
}

std::string spoken_in(const std::string& text) {
  const auto log = read::read_log(text, "text");
  if (!log.ok()) return "no error was found";
  const std::vector<Diagnosis> diagnoses = sound(diagnose(*log, {"train.log", {}, {}}));
  return diagnoses.empty() || !diagnoses[0].tool ? "" : diagnoses[0].tool->id;
}

TEST(Tools, AreKnownInRealTexts) {
  std::map<std::string, std::string> texts;
  for (const char* file : {"unseen.jsonl", "messages.jsonl"}) {
    for (const json& row : rows_of(file)) texts[row.at("id")] = row.at("text");
  }
  std::set<std::string> seen;
  for (const json& row : rows_of("tools.jsonl")) {
    const std::string id = row.value("id", "");
    const std::string text = id.empty() ? row.at("text").get<std::string>() : texts.at(id);
    EXPECT_EQ(spoken_in(text), row.at("tool").get<std::string>()) << id << row.value("source", "");
    seen.insert(row.at("tool"));
  }
  EXPECT_GE(seen.size(), 20u);
}

TEST(Tools, OfEveryAdviceHaveANameAndEachAdviceItsOwnId) {
  std::set<std::string_view> ids;
  for (const std::span<const ToolAdvice> family : tool_advice()) {
    for (const ToolAdvice& advice : family) {
      EXPECT_TRUE(spoken(Speaker{advice.tool, "a test"})) << advice.id;
      EXPECT_TRUE(ids.insert(advice.id).second) << advice.id;
      EXPECT_FALSE(advice.action.empty()) << advice.id;
    }
  }
}

TEST(Tools, AreAllInTheDocument) {
  const std::string text = text_of(data_folder() / "../../docs/explain.md");
  for (int tool = 1; tool <= static_cast<int>(Tool::Ullage); ++tool) {
    const std::optional<Spoken> name = spoken(Speaker{static_cast<Tool>(tool), "a test"});
    ASSERT_TRUE(name) << tool;
    EXPECT_NE(text.find("`" + name->id + "`"), std::string::npos) << name->id;
  }
  EXPECT_FALSE(spoken(Speaker{}));
}

TEST(Tools, OfAShortNameAreNoPartOfAWord) {
  EXPECT_EQ(spoken_in("NET/IB : mlx5_0:1 uses its port\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."),
            "torch");
  EXPECT_EQ(spoken_in("python -m mlx_lm generate\nRuntimeError: [metal::malloc] Attempting to allocate 9000 bytes"),
            "mlx");
}

TEST(Tools, InTheMessageCountMoreThanThoseAround) {
  const std::string text = "starting the docker container\nslurmstepd: error: Exceeded job memory limit";
  EXPECT_EQ(spoken_in(text), "slurm");
}

TEST(Tools, OfARecordingAreKnownByTheFilesOfItsStacks) {
  RecordingMaker maker;
  maker.allocate(50_MiB, maker.stack({{"torch/nn/modules/linear.py", "forward"}, {"train.py", "main"}}));
  EXPECT_EQ(sound(diagnose(maker.recording(), {"x.pickle", {}, {}})).at(0).tool->id, "torch");
  maker.allocate(50_MiB, maker.stack({{"/x/site-packages/vllm/v1/worker/gpu_model_runner.py", "forward"}}));
  const Diagnosis served = sound(diagnose(maker.recording(), {"x.pickle", {}, {}})).at(0);
  ASSERT_TRUE(served.tool);
  EXPECT_EQ(served.tool->id, "vllm");
  EXPECT_EQ(served.tool->seen, "\"vllm\" in the stacks");
}

TEST(Message, OfATooLargeTritonKernelIsNotAboutTheDevicesMemory) {
  const auto log = read::read_log(
      "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 196608, Hardware limit: 166912",
      "x");
  ASSERT_TRUE(log.ok());
  const Diagnosis diagnosis = sound(diagnose(*log, {"x", {}, {}})).at(0);
  EXPECT_EQ(first(diagnosis), "not_memory");
  EXPECT_EQ(diagnosis.causes.size(), 1u);
  EXPECT_TRUE(remedy(diagnosis, "triton_blocks"));
  EXPECT_FALSE(remedy(diagnosis, "smaller_batch"));
  EXPECT_NE(diagnosis.headline.find("on-chip"), std::string::npos);
}

// ONNX Runtime 1.20, core/framework/bfc_arena.cc: max_mem is reached, whatever the device has.
TEST(Tools, OnnxRuntimesArenaHasALimitOfItsOwn) {
  const std::vector<Diagnosis> all = diagnoses_of(
      "Status Message: bfc_arena.cc:376 void *onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Available "
      "memory "
      "of 1048576 is smaller than requested bytes of 135383040");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].facts.requested, Bytes{135383040});
  ASSERT_TRUE(cause(all[0], "memory_fraction_cap"));
  EXPECT_EQ(all[0].causes.front().id, "memory_fraction_cap");
  ASSERT_TRUE(remedy(all[0], "onnx_arena"));
  EXPECT_NE(remedy(all[0], "onnx_arena")->action.find("gpu_mem_limit"), std::string::npos);
}

TEST(Tools, WhoAskedForTheBytesFailsOnTheNextLine) {
  const std::string refused =
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of "
      "memory\n";
  const std::vector<Diagnosis> cache =
      diagnoses_of(refused + "llama_kv_cache_init: failed to allocate buffer for kv cache\n");
  ASSERT_FALSE(cache.empty());
  EXPECT_EQ(cache[0].causes.front().id, "kv_cache");
  EXPECT_FALSE(cause(diagnoses_of(refused + "llama_model_load: failed to load model\n")[0], "kv_cache"));
}

TEST(Tools, ThrustsBadAllocationIsTheCards) {
  for (const char* text : {"MemoryError: bad allocation: cudaErrorMemoryAllocation: out of memory",
                           "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: cuda_memory_resource.hpp:62: "
                           "cudaErrorMemoryAllocation out of memory"}) {
    const std::vector<Diagnosis> all = diagnoses_of(text);
    ASSERT_EQ(all.size(), 1u) << text;
    EXPECT_NE(all[0].causes.front().id, "host_memory") << text;
  }
  EXPECT_EQ(diagnoses_of("MemoryError: std::bad_alloc")[0].causes.front().id, "host_memory");
}

TEST(Tools, OneRankThatHoldsMoreThanTheOthersIsNamed) {
  const auto line = [](int rank, const char* live) {
    return fmt::format(
        "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {0} has a total "
        "capacity "
        "of 39.39 GiB of which 500.00 MiB is free. Including non-PyTorch memory, this process has 38.00 GiB memory in "
        "use. Of the allocated memory {1} is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but "
        "unallocated.\n",
        rank, live);
  };
  const std::vector<Diagnosis> uneven =
      diagnoses_of(line(0, "36.00 GiB") + line(1, "17.00 GiB") + line(2, "16.00 GiB"));
  ASSERT_EQ(uneven.size(), 3u);
  const Cause* found = cause(uneven[0], "uneven_devices");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->confidence, 0.6);
  EXPECT_NE(remedy(uneven[0], "even_shares")->action.find("map_location"), std::string::npos);
  EXPECT_FALSE(cause(uneven[1], "uneven_devices"));
  for (const Diagnosis& one : diagnoses_of(line(0, "36.00 GiB") + line(1, "35.00 GiB"))) {
    EXPECT_FALSE(cause(one, "uneven_devices"));
  }
  EXPECT_FALSE(cause(diagnoses_of(line(0, "36.00 GiB"))[0], "uneven_devices"));
}

// DuckDB 1.3, storage/standard_buffer_manager.cpp and common/allocator.cpp.
TEST(Tools, DuckDbsOwnLimitIsNotTheMachines) {
  const std::vector<Diagnosis> limited =
      diagnoses_of("Out of Memory Error: could not allocate block of size 256.0 KiB (93.7 MiB/95.3 MiB used)");
  ASSERT_EQ(limited.size(), 1u);
  EXPECT_EQ(first(limited[0]), "memory_fraction_cap");
  EXPECT_EQ(limited[0].facts.requested, 256_KiB);
  ASSERT_TRUE(remedy(limited[0], "duckdb_limit"));
  EXPECT_FALSE(remedy(limited[0], "smaller_batch"));
  const std::vector<Diagnosis> refused =
      diagnoses_of("Out of Memory Error: Failed to allocate block of 13230080 bytes");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].facts.requested, Bytes{13230080});
  EXPECT_EQ(first(refused[0]), "host_memory");
  EXPECT_FALSE(cause(refused[0], "memory_fraction_cap"));
}

TEST(Tools, RapidsGetsAdviceInItsOwnWords) {
  const std::vector<Diagnosis> all = diagnoses_of(
      "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /include/rmm/mr/device/cuda_memory_resource.hpp:62: "
      "cudaErrorMemoryAllocation out of memory");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tool->id, "rapids");
  EXPECT_TRUE(remedy(all[0], "rapids_managed"));
  EXPECT_FALSE(remedy(all[0], "gradient_checkpointing"));
}

TEST(Message, OfMetalBelowItsLimitIsNotAboutTheLimit) {
  const auto message = [](const char* held, const char* asked) {
    return fmt::format(
        "RuntimeError: MPS backend out of memory (MPS allocated: {}, other allocations: 0 bytes, max allowed: 7.93 "
        "GB). "
        "Tried to allocate {} on shared pool.",
        held, asked);
  };
  const std::vector<Diagnosis> refused = diagnoses_of(message("0 bytes", "256 bytes"));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(first(refused[0]), "driver_refused");
  EXPECT_FALSE(cause(refused[0], "memory_fraction_cap"));
  ASSERT_TRUE(remedy(refused[0], "update_driver"));
  EXPECT_NE(remedy(refused[0], "update_driver")->action.find("cpu"), std::string::npos);
  const std::vector<Diagnosis> limited = diagnoses_of(message("7.90 GB", "64.00 MB"));
  ASSERT_EQ(limited.size(), 1u);
  EXPECT_TRUE(cause(limited[0], "memory_fraction_cap"));
  EXPECT_FALSE(cause(limited[0], "driver_refused"));
}

TEST(Message, OfACompiledProgramSaysThatItIsTooBig) {
  const std::vector<Diagnosis> all =
      diagnoses_of("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm.");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(first(all[0]), "too_big_for_device");
}

TEST(Message, WithAsMuchFreeAsAskedForHasACause) {
  const auto message = [](const char* free) {
    return fmt::format(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.44 GiB. GPU 0 has a total capacity of 10.58 "
        "GiB "
        "of which {} is free. Including non-PyTorch memory, this process has 6.14 GiB memory in use. Of the allocated "
        "memory 5.77 GiB is allocated by PyTorch, and 178.42 MiB is reserved by PyTorch but unallocated.",
        free);
  };
  EXPECT_TRUE(cause(diagnoses_of(message("4.44 GiB")).at(0), "device_full"));
  EXPECT_FALSE(cause(diagnoses_of(message("4.60 GiB")).at(0), "device_full"));
  EXPECT_TRUE(cause(diagnoses_of(message("4.60 GiB")).at(0), "driver_refused"));
}

TEST(Message, OfAFullFileSystemLeavesTheDiskOpen) {
  const std::vector<Diagnosis> all = diagnoses_of("OSError: [Errno 28] No space left on device");
  ASSERT_EQ(all.size(), 1u);
  ASSERT_TRUE(cause(all[0], "shared_memory"));
  EXPECT_LT(cause(all[0], "shared_memory")->confidence, 0.5);
  ASSERT_TRUE(cause(all[0], "disk_full"));
  EXPECT_LT(cause(all[0], "disk_full")->confidence, 0.5);
  EXPECT_EQ(all[0].next, "df -h");
}

TEST(Message, OfAFullFileSystemIsJudgedByThePathThatItNames) {
  const auto told = [](const char* text) { return diagnoses_of(text).at(0); };
  for (const char* disk :
       {"Caught OSError in DataLoader worker process 0.\nOSError: [Errno 28] No space left on device: '/data/x.npy'",
        "OSError: [Errno 28] No space left on device: 'runs/epoch_3.pt'",
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"}) {
    EXPECT_EQ(first(told(disk)), "disk_full") << disk;
    EXPECT_FALSE(cause(told(disk), "shared_memory")) << disk;
    EXPECT_FALSE(cause(told(disk), "host_memory")) << disk;
    EXPECT_TRUE(remedy(told(disk), "free_disk")) << disk;
  }
  for (const char* shared : {"OSError: [Errno 28] No space left on device: '/dev/shm/pymp-1' -> '/dev/shm/pymp-2'",
                             "OSError: [Errno 28] No space left on device: 'ckpt/tensor0' -> '/dev/shm/tmp1'",
                             "ERROR:  could not resize shared memory segment \"/PostgreSQL.18\" to 8388608 bytes: No "
                             "space left on device"}) {
    EXPECT_EQ(first(told(shared)), "shared_memory") << shared;
    EXPECT_FALSE(cause(told(shared), "disk_full")) << shared;
    EXPECT_TRUE(remedy(told(shared), "shm_size")) << shared;
  }
}

TEST(Message, OfVulkanWithOneLargeBlockIsAboutItsSize) {
  EXPECT_EQ(first(diagnoses_of("ggml_vulkan: Device memory allocation of size 4831838208 failed.").at(0)),
            "buffer_limit");
  EXPECT_FALSE(
      cause(diagnoses_of("ggml_vulkan: Device memory allocation of size 369827840 failed.").at(0), "buffer_limit"));
  EXPECT_EQ(
      first(diagnoses_of("[ERROR] model_manager.cpp:581 - model manager tensor 'embed_tokens.weight' is too large for "
                         "params buffer: 1555824640 > 1073741824")
                .at(0)),
      "buffer_limit");
}

TEST(Message, OfNcclWithASizeHasACause) {
  const std::vector<Diagnosis> all = diagnoses_of("alloc.h:193 NCCL WARN Failed to CUDA calloc 6291456 bytes");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(first(all[0]), "late_library_handle");
  EXPECT_NE(all[0].headline.find("6.00 MiB"), std::string::npos) << all[0].headline;
}

TEST(Message, ThatOnlyAdvisesIsNoError) {
  EXPECT_FALSE(read::read_log("If you get CUDA out of memory, try --tile 256", "text").ok());
  EXPECT_FALSE(read::read_log("lower it to avoid CUDA out of memory", "text").ok());
  EXPECT_TRUE(read::read_log("RuntimeError: CUDA out of memory. If you see this, stop", "text").ok());
  EXPECT_TRUE(read::read_log("if you ask: CUDA out of memory. Tried to allocate 2.00 GiB", "text").ok());
  EXPECT_FALSE(read::read_log("If you use a large image, CUDA out of memory may follow", "text").ok());
  EXPECT_FALSE(read::read_log("If you see torch.cuda.OutOfMemoryError: CUDA out of memory, lower it", "text").ok());
}

// The words of advice belong to another sentence, or to another part of it, than the error.
TEST(Message, BesideAdviceInOneLineIsAnError) {
  // talmolab/sleap#2142: TensorFlow's hint "to avoid OOM", and then the driver's refusal, as one JSON string.
  EXPECT_TRUE(read::read_log("Garbage collection: deallocate free memory regions so that we can re-allocate a larger "
                             "region to avoid OOM due to memory fragmentation. failed to allocate 4.00G (4294967296 "
                             "bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
                             "text")
                  .ok());
  // vllm-project/vllm#15228: the engine's hint, and what it foresaw.
  EXPECT_TRUE(read::read_log("To run the model in eager mode, set 'enforce_eager=True'. If you run out, use fewer "
                             "sequences. RuntimeError: CUDA error: out of memory",
                             "text")
                  .ok());
  EXPECT_TRUE(read::read_log("moved to the CPU to avoid a reload, then CUDA error: out of memory", "text").ok());
  EXPECT_TRUE(read::read_log("retry to avoid stalls: torch.OutOfMemoryError: CUDA out of memory", "text").ok());
}

TEST(Tools, BuiltOnALibraryAreNamedRatherThanIt) {
  // leejet/stable-diffusion.cpp#1621
  const std::vector<Diagnosis> decoder = diagnoses_of(
      "[INFO ] stable-diffusion.cpp:4197 - decoding 1 latents\n"
      "[ERROR] ggml_extend.hpp:70   - ggml_backend_cuda_buffer_type_alloc_buffer: allocating 12637.90 MiB on device 0: "
      "cudaMalloc failed: out of memory\n"
      "[ERROR] ggml_extend.hpp:2054 - vae: failed to allocate the compute buffer\n");
  ASSERT_FALSE(decoder.empty());
  EXPECT_EQ(decoder[0].tool->id, "stable-diffusion.cpp");
  ASSERT_TRUE(remedy(decoder[0], "sdcpp_tiling"));
  EXPECT_FALSE(remedy(decoder[0], "llama_layers"));
  EXPECT_FALSE(remedy(decoder[0], "llama_context"));
  // mudler/LocalAI#11216: the decoder is known by the lines above ggml's.
  EXPECT_EQ(spoken_in("sampling completed, taking 251.82s\ndecoding 1 latents\n"
                      "ggml_vulkan: Device memory allocation of size 4831838208 failed."),
            "stable-diffusion.cpp");
  // ollama/ollama#9782
  EXPECT_EQ(spoken_in("$ ollama run qwen3:8b\n"
                      "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 838447104"),
            "ollama");
  EXPECT_EQ(spoken_in("ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 838447104"), "llama.cpp");
}

// ollama: what it states is what the whole model needs, in many pieces.
TEST(Message, OfAWholeModelsNeedIsNoSingleRequest) {
  const Diagnosis found =
      diagnoses_of("Error: model requires more system memory (37.9 GiB) than is available (15.5 GiB)")[0];
  EXPECT_EQ(found.causes.at(0).id, "host_memory");
  EXPECT_FALSE(cause(found, "single_request_too_big"));
  EXPECT_EQ(found.facts.needed, Bytes{40694815130});
  EXPECT_FALSE(found.facts.requested);
  EXPECT_TRUE(remedy(found, "ollama_host"));
  EXPECT_FALSE(remedy(found, "ollama_layers"));
  EXPECT_EQ(found.headline, "the host has too little: 37.90 GiB are needed: 15.50 GiB free");
}

TEST(Message, InACaptureThatTheDriverRefusesNamesThePools) {
  // vllm-project/vllm#19186
  const std::vector<Diagnosis> all = diagnoses_of(
      "Traceback (most recent call last):\n"
      "  File \"/usr/local/lib/python3.10/site-packages/torch/cuda/graphs.py\", line 84, in capture_end\n"
      "    super().capture_end()\n"
      "RuntimeError: CUDA error: out of memory\n");
  EXPECT_EQ(all.at(0).causes.at(0).id, "private_pools");
}

TEST(Message, BesideThePoolBlamesOthersBeforeTheModel) {
  const std::vector<Diagnosis> torch = diagnoses_of("torch.AcceleratorError: CUDA error: out of memory");
  EXPECT_EQ(torch.at(0).causes.at(0).id, "other_process");
  EXPECT_TRUE(cause(torch[0], "device_full"));
  // Every request of ggml goes to the driver.
  const std::vector<Diagnosis> ggml = diagnoses_of("llama-server: CUDA error: out of memory");
  EXPECT_EQ(ggml.at(0).causes.at(0).id, "device_full");
}

TEST(Tools, OfALauncherAreKnownByItsFunction) {
  // deepspeedai/DeepSpeed#3160
  const std::vector<Diagnosis> killed = diagnoses_of(
      "[2023-04-07 13:09:33,220] [ERROR] [launch.py:324:sigkill_handler] ['python3', 'run.py'] exits with return code "
      "= "
      "-9");
  EXPECT_EQ(killed.at(0).tool->id, "deepspeed");
  EXPECT_TRUE(remedy(killed[0], "deepspeed_offload"));
}

TEST(Message, SaysBelowWhenItFailed) {
  const std::string error =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.44 GiB. GPU 0 has a total capacity of "
      "10.58 "
      "GiB of which 1.44 GiB is free.\n\n";
  EXPECT_TRUE(cause(diagnoses_of(error + "I always encounter this error during the validation.\n")[0],
                    "validation_with_graph"));
  EXPECT_FALSE(cause(diagnoses_of(error + "validation was fine.\n")[0], "validation_with_graph"));
  EXPECT_TRUE(cause(diagnoses_of(error + "It crashes during evaluation\n")[0], "outputs_kept"));
}

TEST(Message, InAFieldOfATitleIsRead) {
  const std::vector<Diagnosis> all = diagnoses_of("Allocation on device | torch.OutOfMemoryError | KSampler");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tool->id, "comfyui");
  EXPECT_FALSE(read::read_log("Allocation on device memory is slow", "text").ok());
}

}  // namespace
}  // namespace ullage::diagnose
