// SPDX-License-Identifier: Apache-2.0

// Judges texts of public threads that no rule knew when they were collected. Each quote is short and has its source.

#include "check.h"

#include <gtest/gtest.h>

namespace ullage::diagnose {
namespace {

std::string action_of(const Diagnosis& diagnosis, const char* id) {
  const Remedy* found = remedy(diagnosis, id);
  return found ? found->action : "";
}

TEST(Unseen, AServersOwnLimitIsNotTheMachines) {
  // ClickHouse/ClickHouse#74962
  const std::vector<Diagnosis> all = diagnoses_of(
      "Code: 241. DB::Exception: Received from localhost:9000. DB::Exception: (total) memory limit exceeded: would use "
      "2.07 GiB (attempt to allocate chunk of 4624776 bytes), current RSS 63.00 GiB, maximum: 60.00 GiB. "
      "OvercommitTracker decision: Query was selected to stop by OvercommitTracker. (MEMORY_LIMIT_EXCEEDED)");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(first(all[0]), "memory_fraction_cap");
  EXPECT_EQ(all[0].tool->id, "clickhouse");
  EXPECT_EQ(all[0].facts.requested, Bytes{4624776});
  EXPECT_EQ(all[0].facts.allowed, 60_GiB);
  EXPECT_NE(action_of(all[0], "clickhouse_limit").find("max_server_memory_usage"), std::string::npos);
  EXPECT_FALSE(remedy(all[0], "raise_limit")) << "the pool's limit is torch's";
  // ClickHouse/ClickHouse#75574: the older word order.
  const std::vector<Diagnosis> of_query = diagnoses_of(
      "TCPHandler: Code: 241. DB::Exception: Memory limit (for query) exceeded: would use 19.12 GiB (attempt to "
      "allocate chunk of 1147215425 bytes), maximum: 18.63 GiB. (MEMORY_LIMIT_EXCEEDED)");
  ASSERT_EQ(of_query.size(), 1u);
  EXPECT_EQ(first(of_query[0]), "memory_fraction_cap");
  EXPECT_EQ(of_query[0].facts.requested, Bytes{1147215425});
}

TEST(Unseen, AnEnginesLogitsAreNamedBeforeItsShare) {
  // sgl-project/sglang#6318
  const std::vector<Diagnosis> all = diagnoses_of(
      "Traceback (most recent call last):\n"
      "  File \"/sglang/python/sglang/srt/layers/logits_processor.py\", line 311, in forward\n"
      "    logits = self._get_logits(pruned_states, lm_head, logits_metadata)\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.05 GiB. GPU 0 has a total capacity of 79.10 GiB "
      "of which 5.94 GiB is free. Process 428408 has 73.15 GiB memory in use. Of the allocated memory 65.99 GiB is "
      "allocated by PyTorch, with 80.15 MiB allocated in private pools (e.g., CUDA Graphs), and 4.45 GiB is reserved "
      "by PyTorch but unallocated.");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(first(all[0]), "logits");
  EXPECT_NE(action_of(all[0], "sglang_logprobs").find("SGLANG_ENABLE_LOGITS_PROCESSER_CHUNK"), std::string::npos);
  // A message without the loss in its traceback gets no such advice.
  EXPECT_FALSE(
      remedy(diagnoses_of("File \"/sglang/srt/layers/linear.py\", line 3, in forward\ntorch.OutOfMemoryError: CUDA "
                          "out of memory. Tried to allocate 6.05 GiB.")
                 .at(0),
             "sglang_logprobs"));
}

TEST(Unseen, ARequestAboveTheCardMayBeAttentionScores) {
  // OpenMOSS/MOSS-Transcribe-Diarize#55: attn_implementation="sdpa" helped.
  const std::string message =
      "CUDA out of memory. Tried to allocate 20.92 GiB. GPU 0 has a total capacity of 8.00 GiB of which 2.22 GiB is "
      "free. Of the allocated memory 4.13 GiB is allocated by PyTorch, and 556.63 MiB is reserved by PyTorch but "
      "unallocated.";
  const std::vector<Diagnosis> all = diagnoses_of(message);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(first(all[0]), "single_request_too_big");
  EXPECT_NE(action_of(all[0], "fused_attention").find("sdpa"), std::string::npos);
  // A traceback that ends elsewhere rules attention out.
  const std::vector<Diagnosis> elsewhere = diagnoses_of(
      "Traceback (most recent call last):\n  File \"decode.py\", line 7, in decode\n    x = self.conv3d(x)\n"
      "RuntimeError: " +
      message);
  EXPECT_FALSE(remedy(elsewhere.at(0), "fused_attention"));
}

TEST(Unseen, AProgramWithEnvironmentsIsToldOfItsReplayBuffer) {
  // younggyoseo/FastTD3#1
  const std::string message =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.09 GiB. GPU 0 has a total capacity of 23.62 "
      "GiB "
      "of which 923.38 MiB is free. Including non-PyTorch memory, this process has 21.89 GiB memory in use. Of the "
      "allocated memory 21.42 GiB is allocated by PyTorch, and 12.88 MiB is reserved by PyTorch but unallocated.";
  const std::vector<Diagnosis> all = diagnoses_of(
      "python3 fast_td3/train.py --env_name G1JoystickRoughTerrain --exp_name FastTD3 --render_interval 5000\n" +
      message);
  EXPECT_NE(action_of(all.at(0), "smaller_replay").find("buffer_size"), std::string::npos);
  EXPECT_FALSE(remedy(diagnoses_of(message).at(0), "smaller_replay"));
}

TEST(Unseen, BoostingIsToldOfItsBatchesAndBins) {
  // dmlc/xgboost#11457
  const std::vector<Diagnosis> all = diagnoses_of(
      "Memory allocation error on worker 0: std::bad_alloc: out_of_memory: RMM failure "
      "at:/include/rmm/mr/device/arena_memory_resource.hpp:171: Maximum pool size exceeded (failed to allocate "
      "5.985840 GiB): No room in arena.");
  EXPECT_EQ(all.at(0).tool->id, "boosting");
  EXPECT_NE(action_of(all[0], "boosting_batches").find("fewer, larger batches"), std::string::npos);
  EXPECT_FALSE(remedy(all[0], "gradient_checkpointing"));
  // catboost/catboost#2750
  const std::vector<Diagnosis> cat = diagnoses_of(
      "(NCudaLib::TOutOfMemoryError) /src/catboost/catboost/cuda/cuda_lib/memory_pool/stack_like_memory_pool.h:303: "
      "Error: Out of memory. Requested 8880 MB; Free 5902.061425 MB");
  EXPECT_EQ(cat.at(0).tool->id, "boosting");
  EXPECT_NE(action_of(cat[0], "boosting_lean").find("gpu_ram_part"), std::string::npos);
}

TEST(Unseen, SeveralCardsHoldCopiesOfTheComputeBuffer) {
  // ggml-org/llama.cpp#16748
  const std::vector<Diagnosis> all = diagnoses_of(
      "llama_context: pipeline parallelism enabled (n_copies=4)\n"
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 12710.31 MiB on device 0: cudaMalloc failed: out of "
      "memory\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 13327728640\n");
  ASSERT_FALSE(all.empty());
  EXPECT_NE(action_of(all[0], "llama_batch").find("GGML_SCHED_MAX_COPIES=1"), std::string::npos);
}

// A storage that is read from a file comes back on the device that the file names, beside the weights.
TEST(Unseen, ACheckpointThatComesBackOnTheDeviceIsACauseOfItsOwn) {
  // lopuhin/transformer-lm#21
  const std::string place =
      "Traceback (most recent call last):\n"
      "  File \"/home/ubuntu/efs/transformer-lm/lm/main.py\", line 136, in load_model\n"
      "    optimizer.load_state_dict(torch.load(optimizer_path))\n"
      "  File \"/p/site-packages/torch/serialization.py\", line 387, in load\n"
      "    return _load(f, map_location, pickle_module, **pickle_load_args)\n"
      "  File \"/p/site-packages/torch/serialization.py\", line 119, in default_restore_location\n"
      "    result = fn(storage, location)\n"
      "  File \"/p/site-packages/torch/serialization.py\", line 99, in _cuda_deserialize\n"
      "    return storage_type(obj.size())\n";
  const std::string figures =
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.17 GiB total capacity; 962.69 MiB "
      "already allocated; 17.19 MiB free; 980.00 MiB reserved in total by PyTorch)";
  const std::vector<Diagnosis> all = diagnoses_of(place + figures);
  ASSERT_EQ(all.size(), 1u);
  const Cause* found = cause(all[0], "loaded_to_device");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evidence.at(0).find("it failed while a file's tensors were made on the device"), 0u);
  EXPECT_NE(action_of(all[0], "load_to_host").find("map_location=\"cpu\""), std::string::npos);
  EXPECT_LT(cause(all[0], "checkpoint_loaded_twice") ? cause(all[0], "checkpoint_loaded_twice")->confidence : 0,
            found->confidence);
  // nkolot/SPIN#76: without figures it is the first cause.
  EXPECT_EQ(first(diagnoses_of(place + "RuntimeError: CUDA error: out of memory").at(0)), "loaded_to_device");
  // Where the message is the host's, the device has nothing to do with it.
  EXPECT_FALSE(
      cause(diagnoses_of(place + "RuntimeError: [enforce fail at alloc_cpu.cpp:80] data. DefaultCPUAllocator: not "
                                 "enough memory: you tried to allocate 67108864 bytes.")
                .at(0),
            "loaded_to_device"));
}

TEST(Unseen, EqualProcessesOnTheFirstCardAreRanksOfOneProgram) {
  // Lightning-AI/pytorch-lightning#19219: four ranks load a checkpoint to GPU 0. The figures are made up.
  const auto message = [](const char* second, unsigned gpu) {
    return "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 MiB. GPU " + std::to_string(gpu) +
           " has a total capacity of 79.15 GiB of which 9.00 MiB is free. Process 101 has 18.20 GiB memory in use. "
           "Process 102 has " +
           second +
           " memory in use. Including non-PyTorch memory, this process has 42.70 GiB memory in use. Of the "
           "allocated memory 41.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but "
           "unallocated.";
  };
  const Cause* found = nullptr;
  const std::vector<Diagnosis> ranks = diagnoses_of(message("18.20 GiB", 0));
  ASSERT_TRUE(found = cause(ranks.at(0), "ranks_on_one_device"));
  EXPECT_NE(found->evidence.at(0).find("the same"), std::string::npos);
  EXPECT_FALSE(cause(diagnoses_of(message("11.90 GiB", 0)).at(0), "ranks_on_one_device"));
  EXPECT_FALSE(cause(diagnoses_of(message("18.20 GiB", 3)).at(0), "ranks_on_one_device"));
}

TEST(Unseen, ABackwardPassMayHoldTheLogitsGradients) {
  // NVIDIA-NeMo/Automodel#3907: a fused or chunked loss helped.
  const std::vector<Diagnosis> all = diagnoses_of(
      "Traceback (most recent call last):\n"
      "  File \"/p/site-packages/torch/autograd/__init__.py\", line 395, in backward\n    _engine_run_backward(\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 720.00 MiB. GPU 0 has a total capacity of 184.31 "
      "GiB of which 443.94 MiB is free. Of the allocated memory 171.63 GiB is allocated by PyTorch, and 2.00 GiB is "
      "reserved by PyTorch but unallocated.");
  EXPECT_TRUE(remedy(all.at(0), "chunked_loss"));
}

TEST(Unseen, AnEvaluationIsToldOfTheTrainersSettings) {
  // MAGICS-LAB/DNABERT_2#78
  const std::vector<Diagnosis> all = diagnoses_of(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.44 GiB. GPU 0 has a total capacity of "
      "10.58 GiB of which 4.44 GiB is free.\n\nI always encounter this error during the fine-tuning evaluation phase.");
  EXPECT_NE(action_of(all.at(0), "outputs_to_host").find("preprocess_logits_for_metrics"), std::string::npos);
}

TEST(Unseen, EachToolIsToldItsOwnSettings) {
  struct Row {
    const char *text, *id, *word;
  };
  for (const auto& [text, id, word] : {
           // huggingface/text-generation-inference#1831
           Row{"File \"/opt/conda/text_generation_server/utils/layers.py\", line 503, in forward\n"
               "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 11.32 GiB. GPU 0 has a total "
               "capacty "
               "of 79.14 GiB of which 3.98 GiB is free.",
               "tgi_tokens", "--max-batch-prefill-tokens"},
           // hbb1/2d-gaussian-splatting#97
           Row{"num_rendered, color = _C.rasterize_gaussians(*args)\ntorch.cuda.OutOfMemoryError: CUDA out of memory.",
               "splatting_points", "densify"},
           // weify627/4D-Rotor-Gaussians#14
           Row{"line 2: 3197021 Killed ns-train splatfacto-big", "splatting_pictures", "cache"},
           // ljwztc/CLIP-Driven-Universal-Model#55
           Row{"File \"/p/monai/inferers/utils.py\", line 180, in sliding_window_inference\nRuntimeError: CUDA out of "
               "memory. Tried to allocate 2.70 GiB (GPU 0; 11.91 GiB total capacity; 8.87 GiB already allocated; 2.31 "
               "GiB free; 8.90 GiB reserved in total by PyTorch)",
               "volumes_host_result", "sw_batch_size"},
           // epi2me-labs/wf-pore-c#49
           Row{"Process `POREC:to_pairs_file` terminated with an error exit status (137)", "workflow_memory", "mem_mb"},
       }) {
    const std::vector<Diagnosis> all = diagnoses_of(text);
    ASSERT_FALSE(all.empty()) << text;
    EXPECT_NE(action_of(all[0], id).find(word), std::string::npos) << id << ": " << action_of(all[0], id);
  }
}

TEST(Unseen, AServingToolIsToldOfOtherVersions) {
  // huggingface/text-generation-inference#1831
  const std::string message =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 11.32 GiB. GPU 0 has a total capacty of "
      "79.14 GiB of which 3.98 GiB is free.";
  EXPECT_TRUE(remedy(
      diagnoses_of("File \"/opt/conda/text_generation_server/utils/layers.py\", line 503, in forward\n" + message)
          .at(0),
      "other_version"));
  EXPECT_FALSE(remedy(diagnoses_of(message).at(0), "other_version"));
}

// itsamewayu/OLFallenDoll#3103: the first words do not say whose memory it was, those behind them do.
TEST(Unseen, WordsBehindAVagueErrorNameTheMemory) {
  const std::string vague = "Ran out of memory allocating 5894144 (5.6 MiB) bytes with alignment 0. Last error msg: ";
  const std::vector<Diagnosis> all =
      diagnoses_of("Fatal error: [File:GenericPlatformMemory.cpp] [Line: 263]\n" + vague +
                   "The paging file is too small for this operation to complete.. (fatal error)");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(first(all[0]), "host_memory");
  EXPECT_EQ(first(diagnoses_of("Fatal error: " + vague + "none").at(0)), "device_full");
}

TEST(Unseen, ARunnerThatWasStarvedMayLackMemory) {
  // actions/runner-images#9823
  EXPECT_EQ(first(diagnoses_of("The hosted runner: GitHub Actions 8 lost communication with the server. Anything in "
                               "your workflow that terminates the runner process, starves it for CPU/Memory, or blocks "
                               "its network access can cause this error.")
                      .at(0)),
            "host_memory");
}

TEST(Unseen, AServersOwnLimitHasItsSettings) {
  // rhubarbgroup/redis-cache#530
  const std::vector<Diagnosis> all =
      diagnoses_of("RedisException: OOM command not allowed when used memory > 'maxmemory'. in object-cache.php:2212");
  EXPECT_NE(action_of(all.at(0), "program_limit").find("maxmemory-policy"), std::string::npos);
}

TEST(Unseen, AShardedModelThatIsSavedMayBeGathered) {
  // ByteDance-Seed/Bagel#139: "when ckpt is saved, an OOM problem is met", in Chinese.
  const std::string met =
      "\xe4\xbf\x9d\xe5\xad\x98"
      "ckpt\xe7\x9a\x84\xe6\x97\xb6\xe5\x80\x99\xe9\x81\x87\xe5\x88\xb0OOM\xe9\x97\xae\xe9\xa2\x98\n";
  EXPECT_EQ(first(diagnoses_of(met + "FSDPCheckpoint.fsdp_save_ckpt\n").at(0)), "full_state_gathered");
  EXPECT_FALSE(cause(diagnoses_of(met).at(0), "full_state_gathered")) << "nothing says that the model is sharded";
}

TEST(Unseen, ALongLineOfAnotherScriptIsRead) {
  // modelscope/ms-swift#9991, shortened: letters of 3 bytes before "leads to OOM". "If" makes it advice.
  std::string text;
  for (int i = 0; i < 250; ++i) text += "\xe6\xa8\xa1";
  EXPECT_EQ(diagnoses_of(text + "\xe5\xaf\xbc\xe8\x87\xb4OOM").size(), 1u);
  EXPECT_FALSE(read::read_log("\xe5\xa6\x82\xe6\x9e\x9c" + text + "\xe5\xaf\xbc\xe8\x87\xb4OOM", "text").ok());
}

TEST(Unseen, AParagraphCountsIfItsWriterSpeaksOfAnOwnRun) {
  const std::string padding(300, 'x');
  EXPECT_EQ(diagnoses_of(padding + ". With 40 frames I get OOM on my card.").size(), 1u);
  EXPECT_FALSE(read::read_log(padding + ". Programs get OOM on such a card. I would not use it.", "text").ok());
}

TEST(Unseen, APersonsWordsReportAnOom) {
  // facebookresearch/vggt#118, liweiphys/layra#10
  for (const char* text : {"the demo exhibits OOM of GPU when image numbers exceed 150", "I'm OOMing with 6VRAM+32RAM.",
                           "training runs OOM at step 40", "the second epoch ended in OOM", "got an OOM crash"}) {
    EXPECT_EQ(diagnoses_of(text).size(), 1u) << text;
  }
  for (const char* text :
       {"to avoid OOM issues, use a smaller batch", "how to prevent OOM", "no OOM at all", "the OOM killer's score"}) {
    EXPECT_FALSE(read::read_log(text, "text").ok()) << text;
  }
}

// A reader of the rules above wrote these texts. 9 of 10 were told as errors.
TEST(Unseen, DocumentationReportsNoError) {
  for (const char* text :
       {"An OOM issue is solved by a smaller batch.", "This release fixes the OOM issue of 1.2.",
        "There is a memory leak detector in the test suite.", "Never run out of RAM again with our streaming loader.",
        "killed by the system administrator on Tuesday", "A thread killed by the kernel receives SIGKILL.",
        "handle the case where the job fails with OOM", "larger batches will OOM on 8 GB cards", "it OOMs rarely"}) {
    EXPECT_FALSE(read::read_log(text, "text").ok()) << text;
  }
  EXPECT_EQ(diagnoses_of("I have an OOM issue with my 8 GB card").size(), 1u);
}

// What a set's sealed half lacked, after it was opened.
TEST(Unseen, ASmallMappingIsRefusedForItsNumber) {
  // kohya-ss/sd-scripts#1790: a higher vm.max_map_count helped.
  const auto refused = [](const char* bytes) {
    return diagnoses_of("RuntimeError: unable to mmap " + std::string(bytes) +
                        " bytes from file </torch_362873_3123855485_63350>: Cannot allocate memory (12)")
        .at(0);
  };
  EXPECT_NE(action_of(refused("4096"), "more_mappings").find("vm.max_map_count"), std::string::npos);
  EXPECT_FALSE(remedy(refused("4294967296"), "more_mappings"));
}

TEST(Unseen, ProgramsThatAreNotTorchsAreRead) {
  struct Row {
    const char *text, *cause;
  };
  for (const auto& [text, cause] : {
           // Project-HAMi/HAMi#585
           Row{"[HAMI-core ERROR (pid:7 thread=1 allocator.c:115)]: cuMemoryAllocate failed res=2", "other_process"},
           // carla-simulator/carla#8575
           Row{"Fatal error: [Line: 1995]\nOut of memory on Vulkan; MemoryTypeIndex=5, AllocSize=1.000MB",
               "device_full"},
           // immich-app/immich#13674
           Row{"Exception from ocl_engine.cpp:185:\n[GPU] out of GPU resources", "device_full"},
           // aws-neuron/transformers-neuronx#92
           Row{"ERROR TDRV:log_dev_mem Failed to allocate 43.325MB (usage: dma rings) on ND 3:NC 0", "device_full"},
           // goauthentik/authentik#18151
           Row{"ERROR:  out of shared memory\nHINT:  You might need to increase max_locks_per_transaction.",
               "memory_fraction_cap"},
           // vllm-project/llm-compressor#1369
           Row{"Running out of host memory when calibrating using AWQModifier.", "host_memory"},
           // RosettaCommons/foundry#152
           Row{"my RAM went up to 125/125GB. Then, the system killed it.", "host_memory"},
       }) {
    EXPECT_EQ(first(diagnoses_of(text).at(0)), cause) << text;
  }
}

TEST(Unseen, AReportThatMemoryGrowsNamesALeakBesideOthers) {
  // resemble-ai/chatterbox#218
  EXPECT_TRUE(
      cause(diagnoses_of("ChatterboxTTS has a severe memory leak that accumulates").at(0), "leak_across_steps"));
  EXPECT_FALSE(read::read_log("If the machine runs out of memory, use a smaller batch.", "text").ok());
}

}  // namespace
}  // namespace ullage::diagnose
