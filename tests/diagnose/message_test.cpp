// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <gtest/gtest.h>

namespace ullage::diagnose {
namespace {

using trace::OutOfMemory;
using trace::Teller;

// The figures are those that torch 1.4 to 2.0 prints.
OutOfMemory cuda(Bytes capacity, Bytes allocated, Bytes reserved, Bytes free, Bytes requested) {
  OutOfMemory message;
  message.teller = Teller::Cuda;
  message.form = "cuda-1.10";
  message.text = "CUDA out of memory. ... try setting max_split_size_mb to avoid fragmentation.";
  message.device = 0;
  message.capacity = capacity, message.allocated = allocated, message.reserved = reserved, message.free = free;
  message.requested = requested;
  message.precision = 5_MiB;
  return message;
}

Diagnosis one(const OutOfMemory& message) {
  trace::Log log;
  log.errors.push_back(message);
  std::vector<Diagnosis> diagnoses = sound(diagnose(log, {"train.log", {}, {}}));
  EXPECT_EQ(diagnoses.size(), 1u);
  return diagnoses.at(0);
}

Bytes part(const Diagnosis& diagnosis, Bar::Part::Kind kind) {
  Bytes sum;
  if (!diagnosis.bar) return sum;
  for (const Bar::Part& part : diagnosis.bar->parts) sum += part.kind == kind ? part.bytes : Bytes{};
  return sum;
}

TEST(Message, WithMoreCachedThanAskedForIsFragmentation) {
  const Diagnosis diagnosis = one(cuda(16_GiB, 8_GiB, 14_GiB, 20_MiB, 3_GiB));
  EXPECT_EQ(first(diagnosis), "fragmentation");
  EXPECT_NE(diagnosis.causes[0].evidence[0].find("6.00 GiB are cached but not allocated, 3.00 GiB were asked for"),
            std::string::npos);
  ASSERT_TRUE(remedy(diagnosis, "expandable_segments"));
  EXPECT_EQ(remedy(diagnosis, "expandable_segments")->saves, 6_GiB);
  EXPECT_EQ(part(diagnosis, Bar::Part::Kind::Stuck), 6_GiB);
  EXPECT_EQ(part(diagnosis, Bar::Part::Kind::NotPyTorch), 2_GiB - 20_MiB);
  EXPECT_EQ(diagnosis.headline,
            "GPU 0 (16.00 GiB) refused 3.00 GiB: 8.00 GiB live, 6.00 GiB cached in pieces, 20.00 MiB free");
}

TEST(Message, OfOneRequestAboveTheCapacityIsToldAtOnce) {
  const Diagnosis diagnosis = one(cuda(12_GiB, 1_GiB, 1_GiB, 9_GiB, 55_GiB));
  EXPECT_EQ(first(diagnosis), "single_request_too_big");
  EXPECT_GT(diagnosis.causes[0].confidence, 0.9);
  EXPECT_EQ(diagnosis.to_know_more, "") << "nothing is open";
  EXPECT_TRUE(remedy(diagnosis, "split_request"));
  EXPECT_FALSE(remedy(diagnosis, "expandable_segments"));
}

TEST(Message, OfAFullCardNeverSaysMoreThanOneHalf) {
  const Diagnosis diagnosis = one(cuda(16_GiB, 15_GiB, 15_GiB + 100_MiB, 30_MiB, 200_MiB));
  EXPECT_EQ(first(diagnosis), "device_full");
  EXPECT_LE(diagnosis.causes[0].confidence, 0.5);
  EXPECT_NE(diagnosis.to_know_more.find("_record_memory_history"), std::string::npos);
  EXPECT_NE(diagnosis.to_know_more.find("_dump_snapshot(\"oom.pickle\")"), std::string::npos);
  EXPECT_EQ(diagnosis.next, "ullage explain oom.pickle");
}

TEST(Message, WithLiveAndRequestAboveTheCapacityNamesWhatIsNeeded) {
  const Diagnosis diagnosis = one(cuda(16_GiB, 15_GiB, 15_GiB, 500_MiB, 2_GiB));
  EXPECT_EQ(first(diagnosis), "too_big_for_device");
  ASSERT_TRUE(remedy(diagnosis, "larger_device"));
  EXPECT_EQ(remedy(diagnosis, "larger_device")->action, "a device with more than 17.51 GiB");
}

TEST(Message, WithMostOfTheCardElsewhereNamesOthers) {
  const Diagnosis diagnosis = one(cuda(8_GiB, 2_GiB, 2_GiB, 100_MiB, 500_MiB));
  EXPECT_EQ(first(diagnosis), "other_process");
  EXPECT_GT(diagnosis.causes[0].confidence, 0.5);
  ASSERT_TRUE(remedy(diagnosis, "end_process"));
  EXPECT_EQ(remedy(diagnosis, "end_process")->saves, 6_GiB - 100_MiB - 700_MiB);
  EXPECT_EQ(diagnosis.next, "ullage explain oom.pickle");
}

TEST(Message, DoesNotTakeTheContextForAnotherProcess) {
  const Diagnosis diagnosis = one(cuda(4_GiB, 2800_MiB, 2900_MiB, 40_MiB, 54_MiB));
  EXPECT_FALSE(cause(diagnosis, "other_process"));
}

TEST(Message, NamesTheProcessThatHoldsTheCard) {
  OutOfMemory message = cuda(24_GiB, 4_GiB, 5_GiB, 1_GiB, 2_GiB);
  message.process = 6_GiB;
  message.processes = {{4711, 17_GiB}};
  const Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "other_process");
  EXPECT_EQ(remedy(diagnosis, "end_process")->action, "end process 4711 if it is not needed: kill 4711");
  EXPECT_EQ(remedy(diagnosis, "end_process")->saves, 17_GiB);
  EXPECT_EQ(part(diagnosis, Bar::Part::Kind::NotPyTorch), 18_GiB) << "1 GiB of this process and 17 of the other";
}

TEST(Message, TakesTheOnlyProcessOfAContainerForThisOne) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 158_MiB);
  message.processes = {{21422, 23_GiB + 500_MiB}};
  const Diagnosis diagnosis = one(message);
  EXPECT_FALSE(cause(diagnosis, "other_process"));
  EXPECT_EQ(diagnosis.facts.process, 23_GiB + 500_MiB);
}

TEST(Message, WithContradictingFiguresGetsANoteAndNoBar) {
  const Diagnosis diagnosis = one(cuda(4_GiB, 5_GiB, 6_GiB, 7_GiB, 1_GiB));
  EXPECT_FALSE(diagnosis.bar);
  EXPECT_FALSE(cause(diagnosis, "too_big_for_device")) << "nothing is concluded from such figures";
  ASSERT_FALSE(diagnosis.notes.empty());
  EXPECT_NE(diagnosis.notes[0].find("free (7.00 GiB) is more than the capacity (4.00 GiB)"), std::string::npos);
}

TEST(Message, WhoseRoundedFiguresPassTheCapacityStillAddsUp) {
  // Rounded figures may exceed the capacity: 10.01 + 5.99 + 0.01 are 16.01 GiB of 16.00.
  OutOfMemory message = cuda(16_GiB, 10_GiB + 10_MiB, 16_GiB, 10_MiB, 1_GiB);
  const Diagnosis diagnosis = one(message);
  ASSERT_TRUE(diagnosis.bar);
  EXPECT_EQ(diagnosis.bar->total, 16_GiB);
}

TEST(Message, OfAnyFiguresNeverBreaksAContract) {
  const Bytes odd[] = {
      0_B, 1_B, 1_MiB, 16_GiB, Bytes{UINT64_MAX}, Bytes{UINT64_MAX - 1}, Bytes{std::uint64_t{1} << 63}};
  for (Bytes capacity : odd) {
    for (Bytes allocated : odd) {
      for (Bytes free : odd) {
        for (Bytes requested : odd) {
          OutOfMemory message = cuda(capacity, allocated, allocated, free, requested);
          message.process = free, message.allowed = requested, message.private_pools = capacity;
          message.processes = {{1, requested}, {2, free}, {3, capacity}};
          message.precision = odd[3];
          one(message);
          message.reserved.reset(), message.unallocated = requested;
          for (int teller = 0; teller <= static_cast<int>(Teller::Other); ++teller) {
            message.teller = static_cast<Teller>(teller);
            message.other = free, message.needed = requested;
            one(message);
          }
        }
      }
    }
  }
}

TEST(Message, OfAFractionSaysWhoSetIt) {
  OutOfMemory message = cuda(256_GiB, 1_GiB, 1_GiB, 244_GiB, 100_MiB);
  message.allowed = 1_GiB + 50_MiB;
  const Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "memory_fraction_cap");
  EXPECT_GT(diagnosis.causes[0].confidence, 0.9);
  ASSERT_TRUE(remedy(diagnosis, "raise_limit"));
  EXPECT_EQ(remedy(diagnosis, "raise_limit")->saves, 255_GiB - 50_MiB);
}

TEST(Message, OnAppleNamesTheVariableAndTheOthers) {
  OutOfMemory message;
  message.teller = Teller::Mps;
  message.text = "MPS backend out of memory";
  message.allocated = 7_GiB, message.other = 24_GiB, message.allowed = 31_GiB + 50_MiB, message.requested = 129_MiB;
  message.precision = 5_MiB;
  const Diagnosis diagnosis = one(message);
  EXPECT_TRUE(cause(diagnosis, "unified_memory"));
  EXPECT_TRUE(cause(diagnosis, "memory_fraction_cap"));
  ASSERT_TRUE(remedy(diagnosis, "raise_limit"));
  EXPECT_NE(remedy(diagnosis, "raise_limit")->action.find("before torch is imported"), std::string::npos);
  ASSERT_TRUE(diagnosis.bar);
  EXPECT_EQ(diagnosis.bar->total, 31_GiB + 50_MiB);
}

TEST(Message, ThatRefusesAlthoughThereIsRoomBlamesTheDriver) {
  EXPECT_EQ(first(one(cuda(6_GiB, 800_MiB, 1_GiB, 3_GiB, 2_GiB))), "driver_refused");
}

TEST(Message, OfGarbageGivesNoMemoryAdvice) {
  const Diagnosis diagnosis = one(cuda(24_GiB, 1_GiB, 1_GiB, 20_GiB, 130674_GiB));
  EXPECT_EQ(first(diagnosis), "garbage_size");
  EXPECT_GT(diagnosis.causes[0].confidence, 0.9);
  EXPECT_FALSE(remedy(diagnosis, "smaller_batch"));
  EXPECT_TRUE(remedy(diagnosis, "check_sizes"));
}

TEST(Message, OfMetalAndArcTellsTheLimitOfOneBlock) {
  OutOfMemory message;
  message.teller = Teller::Metal, message.text = "Invalid buffer size: 19.45 GB", message.requested = 19_GiB;
  EXPECT_EQ(first(one(message)), "buffer_limit");
  message = cuda(15_GiB, 0_B, 0_B, 0_B, 8_GiB);
  message.teller = Teller::Xpu, message.free.reset();
  EXPECT_EQ(first(one(message)), "buffer_limit");
}

TEST(Message, OfALibraryDoubtsAndNamesTheHandle) {
  OutOfMemory message;
  message.teller = Teller::Cublas;
  message.text = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`";
  Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "late_library_handle");
  EXPECT_TRUE(cause(diagnosis, "index_error_in_disguise"));
  EXPECT_EQ(diagnosis.next, "nvidia-smi");
  message.before = {
      "../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: [0,0,0] "
      "Assertion `srcIndex < srcSelectDimSize` failed."};
  diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "index_error_in_disguise");
  EXPECT_GT(diagnosis.causes[0].confidence, 0.8);
}

TEST(Message, InTheOptimizersFirstStepNamesItsState) {
  OutOfMemory message = cuda(16_GiB, 12_GiB, 15_GiB, 100_MiB, 200_MiB);
  message.reserved = 12_GiB + 100_MiB, message.free = 3_GiB, message.requested = 4_GiB;
  message.traceback = {{"/usr/lib/python3/site-packages/torch/optim/adam.py", "_init_group", 120},
                       {"/home/me/train.py", "train", 88}};
  message.code = {"state[\"exp_avg\"] = torch.zeros_like(", "optimizer.step()"};
  message.before = {"Epoch 0 step 0 loss 7.1"};
  const Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "optimizer_state");
  EXPECT_GT(diagnosis.causes[0].confidence, 0.7) << "it is the first step";
  EXPECT_TRUE(remedy(diagnosis, "eight_bit_optimizer"));
  EXPECT_TRUE(remedy(diagnosis, "foreach_false"));
}

TEST(Message, InAnEvaluationAsksForNoGrad) {
  OutOfMemory message = cuda(16_GiB, 15_GiB, 15_GiB, 100_MiB, 200_MiB);
  message.traceback = {{"/x/site-packages/torch/nn/functional.py", "relu", 1453},
                       {"/home/me/train.py", "validate", 140}};
  message.code = {"result = torch.relu(input)", "out = model(x)"};
  message.before = {"Epoch 3: validation"};
  const Diagnosis diagnosis = one(message);
  ASSERT_TRUE(cause(diagnosis, "validation_with_graph"));
  EXPECT_LE(cause(diagnosis, "validation_with_graph")->confidence, 0.5) << "no_grad may well be there";
  EXPECT_TRUE(remedy(diagnosis, "no_grad"));
  message.traceback = {{"/home/me/values.py", "interval", 140}};
  message.before = {"value 3"};
  EXPECT_FALSE(cause(one(message), "validation_with_graph")) << "part of a longer word";
}

TEST(Message, InTheLossOfALanguageModelNamesLogits) {
  OutOfMemory message = cuda(80_GiB, 70_GiB, 75_GiB, 1_GiB, 6700_MiB);
  message.traceback = {{"/x/site-packages/torch/nn/functional.py", "cross_entropy", 3059}};
  message.code = {"return torch._C._nn.cross_entropy_loss("};
  const Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "logits");
  EXPECT_TRUE(remedy(diagnosis, "chunked_loss"));
}

TEST(Message, InAttentionNamesTheScores) {
  OutOfMemory message = cuda(80_GiB, 70_GiB, 75_GiB, 1_GiB, 6_GiB);
  message.traceback = {{"/home/me/model/attention.py", "forward", 31}};
  message.code = {"scores = q @ k.transpose(-2, -1)"};
  EXPECT_EQ(first(one(message)), "attention_matrix");
  EXPECT_TRUE(remedy(one(message), "fused_attention"));
}

// People paste the last line of source without the traceback's "File" lines.
TEST(Message, BelowALineOfSourceReadsItAsCode) {
  OutOfMemory message = cuda(61_GiB, 26_GiB, 27_GiB, 34_GiB, 35_GiB);
  EXPECT_NE(first(one(message)), "attention_matrix");
  message.before = {"hidden_states = F.scaled_dot_product_attention("};
  EXPECT_EQ(first(one(message)), "attention_matrix");
  message.before = {"the attention is slow (see the manual)"};
  EXPECT_NE(first(one(message)), "attention_matrix");
}

TEST(Message, WhileLoadingACheckpointNamesTheSecondCopy) {
  OutOfMemory message = cuda(8_GiB, 7_GiB, 7_GiB + 100_MiB, 0_B, 20_MiB);
  message.traceback = {{"/x/site-packages/torch/serialization.py", "_load", 1402}, {"/home/me/train.py", "resume", 30}};
  message.code = {"", "checkpoint = torch.load(path)"};
  const Diagnosis diagnosis = one(message);
  EXPECT_TRUE(cause(diagnosis, "checkpoint_loaded_twice"));
  ASSERT_TRUE(remedy(diagnosis, "drop_checkpoint"));
  EXPECT_NE(remedy(diagnosis, "drop_checkpoint")->action.find("map_location=\"cpu\""), std::string::npos);
  ASSERT_FALSE(diagnosis.notes.empty());
  EXPECT_NE(diagnosis.notes[0].find("20.00 MiB is the size of a segment"), std::string::npos);
}

TEST(Message, OfTwoRanksOnOneDeviceSaysSo) {
  trace::Log log;
  for (unsigned rank : {0u, 1u}) {
    log.errors.push_back(cuda(24_GiB, 10_GiB, 11_GiB, 100_MiB, 200_MiB));
    log.errors.back().rank = rank;
  }
  const std::vector<Diagnosis> diagnoses = sound(diagnose(log, {}));
  ASSERT_EQ(diagnoses.size(), 2u);
  EXPECT_EQ(first(diagnoses[1]), "ranks_on_one_device");
  ASSERT_TRUE(remedy(diagnoses[1], "set_device"));
  EXPECT_NE(remedy(diagnoses[1], "set_device")->action.find("LOCAL_RANK"), std::string::npos);
}

TEST(Message, WithStrayContextsNamesTheRanks) {
  OutOfMemory message = cuda(24_GiB, 19_GiB, 20_GiB, 100_MiB, 200_MiB);
  message.process = 20_GiB + 600_MiB;
  message.processes = {{11, 725_MiB}, {12, 725_MiB}, {13, 725_MiB}};
  EXPECT_TRUE(cause(one(message), "ranks_on_one_device"));
}

TEST(Message, InDataParallelNamesTheFirstCard) {
  OutOfMemory message = cuda(12_GiB, 10_GiB, 11_GiB, 10_MiB, 100_MiB);
  message.traceback = {{"/x/torch/nn/parallel/scatter_gather.py", "gather", 68}};
  EXPECT_EQ(first(one(message)), "dataparallel_first_card");
}

TEST(Message, OfTheHostSendsToTheBudget) {
  OutOfMemory message;
  message.teller = Teller::Cpu;
  message.text = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 3077222400 bytes.";
  message.requested = Bytes{3077222400};
  Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "host_memory");
  EXPECT_EQ(diagnosis.next, "ullage run --memory auto -- python train.py");
  message.teller = Teller::SharedMemory;
  diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "shared_memory");
  EXPECT_NE(remedy(diagnosis, "shm_size")->action.find("--shm-size"), std::string::npos);
  message = {};
  message.teller = Teller::KernelKill;
  EXPECT_EQ(first(one(message)), "host_memory");
}

TEST(Message, OfADeviceThatWasNotAskedForIsLeftOut) {
  trace::Log log;
  log.errors = {cuda(8_GiB, 7_GiB, 7_GiB, 0_B, 2_GiB), cuda(8_GiB, 7_GiB, 7_GiB, 0_B, 2_GiB)};
  log.errors[1].device = 3;
  EXPECT_EQ(sound(diagnose(log, {"", 3, {}})).size(), 1u);
  EXPECT_EQ(sound(diagnose(log, {"", 7, {}})).size(), 0u);
  EXPECT_EQ(sound(diagnose(log, {})).size(), 2u);
}

TEST(Message, GetsOtherAdviceForAnotherCause) {
  const auto ids = [](const Diagnosis& diagnosis) {
    std::vector<std::string> all;
    for (const Remedy& each : diagnosis.remedies) all.push_back(each.id);
    return all;
  };
  EXPECT_NE(ids(one(cuda(16_GiB, 8_GiB, 14_GiB, 20_MiB, 3_GiB))), ids(one(cuda(12_GiB, 1_GiB, 1_GiB, 9_GiB, 55_GiB))));
  EXPECT_NE(ids(one(cuda(8_GiB, 2_GiB, 2_GiB, 100_MiB, 500_MiB))), ids(one(cuda(16_GiB, 15_GiB, 15_GiB, 0_B, 2_GiB))));
}

TEST(Message, WithTorchsBoilerplateIsNoAssertion) {
  OutOfMemory message;
  message.teller = Teller::CudaDriver, message.form = "cuda-error", message.text = "CUDA error: out of memory";
  message.before = {"Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."};
  EXPECT_FALSE(cause(one(message), "index_error_in_disguise"));
  message.before = {"CUDA error: device-side assert triggered"};
  EXPECT_EQ(first(one(message)), "index_error_in_disguise");
}

TEST(Message, OfAServerGetsItsOwnSettings) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 300_MiB);
  const Diagnosis own = one(message);
  EXPECT_TRUE(remedy(own, "gradient_checkpointing"));
  message.before = {"(EngineCore pid=12) INFO vllm/v1/worker/gpu_worker.py: loading weights"};
  const Diagnosis served = one(message);
  EXPECT_TRUE(cause(served, "utilization_share"));
  ASSERT_TRUE(remedy(served, "vllm_utilization"));
  EXPECT_NE(remedy(served, "vllm_utilization")->action.find("--gpu-memory-utilization"), std::string::npos);
  EXPECT_TRUE(remedy(served, "vllm_max_model_len"));
  EXPECT_FALSE(remedy(served, "gradient_checkpointing")) << "nobody trains there";
  EXPECT_FALSE(remedy(served, "smaller_batch"));
}

TEST(Message, OfTheHostGetsTheSettingOfWhoEndedIt) {
  OutOfMemory message;
  message.teller = Teller::KernelKill, message.form = "slurm-limit";
  message.text = "slurmstepd: error: Exceeded job memory limit";
  const Diagnosis slurm = one(message);
  EXPECT_EQ(first(slurm), "host_memory");
  ASSERT_TRUE(remedy(slurm, "slurm_mem"));
  EXPECT_NE(remedy(slurm, "slurm_mem")->action.find("--mem="), std::string::npos);
  message.teller = Teller::Cpu, message.form = "node-heap", message.limit = trace::Limit::Heap;
  message.text = "JavaScript heap out of memory";
  const Diagnosis node = one(message);
  EXPECT_EQ(first(node), "memory_fraction_cap");
  EXPECT_TRUE(remedy(node, "node_heap"));
}

TEST(Message, OfOneBufferAboveALimitSaysSo) {
  OutOfMemory message;
  message.teller = Teller::Other, message.form = "webgpu-buffer", message.limit = trace::Limit::Buffer;
  message.text = "Buffer size (3185049600) exceeds the max buffer size limit (1073741824)";
  message.before = {"WebGPU device error"};
  const Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "buffer_limit");
  EXPECT_TRUE(remedy(diagnosis, "webgpu_limits"));
}

TEST(Message, WithoutARequestMayStillTellAFullDevice) {
  OutOfMemory message;
  message.teller = Teller::Mps, message.form = "mps-short", message.text = "MPS backend out of memory";
  message.allocated = 18_GiB, message.allowed = 18_GiB + 200_MiB;
  EXPECT_EQ(first(one(message)), "device_full");
  message.allocated = 2_GiB;
  EXPECT_FALSE(cause(one(message), "device_full"));
}

TEST(Message, WithMoreLiveThanTheDeviceHasTellsTheSpill) {
  const Diagnosis diagnosis = one(cuda(8_GiB, 14_GiB, 15_GiB, 0_B, 1_GiB));
  EXPECT_EQ(first(diagnosis), "spilled_to_host");
  EXPECT_NE(diagnosis.causes[0].evidence[0].find("15.00 GiB are held on a device of 8.00 GiB"), std::string::npos);
  EXPECT_TRUE(remedy(diagnosis, "no_spilling"));
  EXPECT_TRUE(remedy(diagnosis, "smaller_batch"));
  EXPECT_FALSE(cause(one(cuda(8_GiB, 8_GiB + 3_MiB, 8_GiB + 4_MiB, 0_B, 1_GiB)), "spilled_to_host")) << "rounding";
}

TEST(Message, OfVllmOnACardOfAnySizeIsNoSharedMemory) {
  const auto shared = [](Bytes capacity) {
    OutOfMemory message;
    message.teller = Teller::Vllm;
    message.capacity = capacity;
    return cause(one(message), "unified_memory");
  };
  EXPECT_TRUE(shared(124611_MiB)) << "121.69 GiB: GB10";
  EXPECT_FALSE(shared(14909_MiB)) << "14.56 GiB: T4";
  EXPECT_FALSE(shared(22559_MiB)) << "22.03 GiB: L4";
  EXPECT_FALSE(shared(45466_MiB)) << "44.40 GiB: L40S";
  EXPECT_FALSE(shared(24_GiB));
}

TEST(Message, WithMoreFreeThanTheDeviceHasTellsOneSharedMemory) {
  const Diagnosis diagnosis = one(cuda(15_GiB, 2_GiB, 2_GiB, 85_GiB, 20_GiB));
  EXPECT_EQ(first(diagnosis), "unified_memory");
  EXPECT_FALSE(cause(diagnosis, "single_request_too_big")) << "85 GiB are free";
  EXPECT_TRUE(remedy(diagnosis, "free_shared_memory"));
  const Diagnosis larger = one(cuda(15_GiB, 2_GiB, 2_GiB, 85_GiB, 100_GiB));
  ASSERT_TRUE(cause(larger, "single_request_too_big"));
  EXPECT_LE(cause(larger, "single_request_too_big")->confidence, 0.5);
}

TEST(Message, OfAFractionAllowsForRounding) {
  // 1.05 GiB allowed may be 1.045, and 1017.01 MiB, 55.40 MiB and 2.00 MiB are rounded down too.
  OutOfMemory message = cuda(256_GiB, 1017_MiB, 1073_MiB, 244_GiB, 2_MiB);
  message.allowed = Bytes{1127428915};  // 1.05 GiB: 0.2 MiB above the sum
  message.precision = 5_MiB;
  const Diagnosis diagnosis = one(message);
  EXPECT_EQ(first(diagnosis), "memory_fraction_cap");
  EXPECT_GE(diagnosis.causes[0].confidence, 0.9);
  message.allowed = 2_GiB;
  ASSERT_TRUE(cause(one(message), "memory_fraction_cap"));
  EXPECT_LT(cause(one(message), "memory_fraction_cap")->confidence, 0.5) << "a gigabyte is no rounding";
}

TEST(Message, UnderAutocastIsNotToldToUseIt) {
  OutOfMemory message = cuda(16_GiB, 15_GiB, 15_GiB, 100_MiB, 200_MiB);
  EXPECT_TRUE(remedy(one(message), "half_precision"));
  message.traceback = {{"/home/me/train.py", "main", 140}};
  message.code = {"with torch.autocast(\"cuda\", dtype=torch.bfloat16):"};
  EXPECT_FALSE(remedy(one(message), "half_precision"));
  EXPECT_TRUE(remedy(one(message), "smaller_batch"));
}

TEST(Message, WithAsMuchFreeAsAskedForWithinRoundingDoesNotBlameTheDriver) {
  EXPECT_FALSE(cause(one(cuda(11_GiB, 5_GiB, 6_GiB, 4547_MiB, 4547_MiB)), "driver_refused"));
}

TEST(Message, InACaptureOrWithAPrivatePoolNamesThePools) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 136_MiB);
  message.before = {"Capturing CUDA graph shapes: 12%"};
  EXPECT_TRUE(cause(one(message), "private_pools"));
  message = cuda(24_GiB, 400_MiB, 500_MiB, 23_GiB, 654_MiB);
  message.private_pools = 5_MiB;
  EXPECT_EQ(first(one(message)), "private_pools");
}

TEST(Message, OfLoraAndReplayBuffersNamesThem) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 300_MiB);
  message.traceback = {{"/x/site-packages/peft/tuners/lora/layer.py", "forward", 12}, {"/home/me/train.py", "main", 9}};
  EXPECT_TRUE(cause(one(message), "activations"));
  message.traceback = {{"/home/me/replay_buffer.py", "push", 12}};
  EXPECT_TRUE(cause(one(message), "data_on_device"));
}

TEST(Message, OfAKilledProcessSaysWhatItDid) {
  OutOfMemory message;
  message.teller = Teller::KernelKill, message.form = "killed", message.text = "Killed";
  message.before = {"Saving checkpoint to out/step_500"};
  const Diagnosis diagnosis = one(message);
  ASSERT_EQ(first(diagnosis), "host_memory");
  EXPECT_NE(diagnosis.causes[0].evidence.back().find("staged on the host"), std::string::npos);
  EXPECT_TRUE(remedy(diagnosis, "sharded_checkpoint"));
  EXPECT_TRUE(remedy(diagnosis, "less_data"));
  EXPECT_TRUE(remedy(diagnosis, "kernel_room"));
  EXPECT_FALSE(remedy(diagnosis, "more_host_memory")) << "kernel_room says it";
}

// Returns the place of a remedy in the list; the size of the list if it is not there.
std::size_t rank(const Diagnosis& diagnosis, std::string_view id) {
  const auto found = std::ranges::find(diagnosis.remedies, id, &Remedy::id);
  return static_cast<std::size_t>(found - diagnosis.remedies.begin());
}

TEST(Message, OfAProgramThatOnlyInfersProposesNothingOfTraining) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 300_MiB);
  message.before = {"python inference.py --input video.mp4"};
  const Diagnosis infers = one(message);
  EXPECT_FALSE(remedy(infers, "gradient_checkpointing"));
  EXPECT_FALSE(remedy(infers, "half_precision")) << "autocast keeps the weights in fp32";
  EXPECT_TRUE(remedy(infers, "half_precision_weights"));
  ASSERT_TRUE(remedy(infers, "no_grad"));
  ASSERT_TRUE(remedy(infers, "smaller_batch"));
  EXPECT_EQ(remedy(infers, "smaller_batch")->action.find("accumulation"), std::string::npos);
  message.traceback = {{"/x/site-packages/torch/utils/_contextlib.py", "decorate_context", 120}};
  EXPECT_FALSE(remedy(one(message), "no_grad")) << "a frame of no_grad";
  message.before = {"python train.py --inference_every 100"};
  EXPECT_TRUE(remedy(one(message), "gradient_checkpointing"));
}

TEST(Message, ProposesNothingThatTheTextSaysIsDone) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 300_MiB);
  const auto with = [&](const char* line) {
    message.before = {line};
    return one(message);
  };
  EXPECT_TRUE(remedy(with("python train.py --batch_size=16 --fp16 False"), "smaller_batch"));
  EXPECT_TRUE(remedy(with("python train.py --batch_size=16 --fp16 False"), "half_precision"));
  EXPECT_FALSE(remedy(with("python train.py --train_batch_size=1 \\"), "smaller_batch"));
  EXPECT_FALSE(remedy(with("even with a batch size of 1"), "smaller_batch"));
  EXPECT_FALSE(remedy(with("python train.py --gradient_checkpointing --x 2"), "gradient_checkpointing"));
  EXPECT_TRUE(remedy(with("python train.py --gradient_checkpointing False"), "gradient_checkpointing"));
  EXPECT_FALSE(remedy(with("accelerate launch --mixed_precision=\"bf16\" train.py"), "half_precision"));
  message.after = {"batch_size = 1 #16"};
  EXPECT_FALSE(remedy(with("python train.py"), "smaller_batch")) << "below the error";
}

TEST(Message, OfAModelOnItsWayToTheDeviceProposesNothingOfAStep) {
  OutOfMemory message = cuda(24_GiB, 23_GiB, 23_GiB, 100_MiB, 300_MiB);
  message.traceback = {{"/home/me/run.py", "main", 35}, {"/x/site-packages/torch/nn/modules/module.py", "_apply", 810}};
  message.code = {"model = model.cuda(gpu)", "module._apply(fn)"};
  const Diagnosis moves = one(message);
  EXPECT_TRUE(cause(moves, "model_weights"));
  for (const char* id : {"smaller_batch", "smaller_input", "gradient_checkpointing", "half_precision"})
    EXPECT_FALSE(remedy(moves, id)) << id;
  ASSERT_TRUE(remedy(moves, "half_precision_weights"));
  EXPECT_TRUE(remedy(moves, "smaller_model"));
}

TEST(Message, OfARequestAboveAllThatIsLivePutsFirstWhatMakesItSmaller) {
  const Diagnosis large = one(cuda(80_GiB, 10_GiB, 12_GiB, 60_GiB, 66_GiB));
  EXPECT_LT(rank(large, "smaller_input"), rank(large, "gradient_checkpointing"));
  EXPECT_LT(rank(large, "half_precision"), rank(large, "smaller_model"));
  const Diagnosis small = one(cuda(80_GiB, 76_GiB, 78_GiB, 1_GiB, 2_GiB));
  EXPECT_LT(rank(small, "smaller_model"), rank(small, "half_precision"));
}

TEST(Message, OfTheTrainersEvaluationProposesItsSettingsOnce) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 300_MiB);
  message.traceback = {{"/x/site-packages/transformers/trainer.py", "evaluation_loop", 3000}};
  const Diagnosis diagnosis = one(message);
  EXPECT_FALSE(cause(diagnosis, "validation_with_graph")) << "its loop runs under no_grad";
  EXPECT_TRUE(remedy(diagnosis, "trainer_evaluation"));
  EXPECT_FALSE(remedy(diagnosis, "gradient_checkpointing")) << "an evaluation has no backward pass";
  EXPECT_TRUE(remedy(diagnosis, "trainer_batch"));
  EXPECT_FALSE(remedy(diagnosis, "smaller_batch")) << "trainer_batch says it";
}

TEST(Message, WithItsTracebackBelowReadsItThere) {
  OutOfMemory message = cuda(24_GiB, 22_GiB, 23_GiB, 100_MiB, 300_MiB);
  message.after = {"File \".../vllm/v1/sample/sampler.py\", line ...", "return logits.log_softmax(dim=-1)"};
  const Diagnosis diagnosis = one(message);
  EXPECT_TRUE(cause(diagnosis, "logits"));
  EXPECT_EQ(diagnosis.tool->id, "vllm");
}

TEST(Summary, TellsStuckBytesAndFailures) {
  trace::Log log;
  trace::MemorySummary summary;
  summary.device = 0, summary.ooms = 1, summary.retries = 3;
  const auto row = [](const char* name, Bytes current, Bytes peak) {
    trace::SummaryRow made;
    made.name = name;
    made.cells[0] = {current.count, 1_MiB};
    made.cells[1] = {peak.count, 1_MiB};
    return made;
  };
  summary.rows = {row("Allocated memory", 5_GiB, 6_GiB), row("GPU reserved memory", 8_GiB, 8_GiB),
                  row("Non-releasable memory", 2500_MiB, 3_GiB)};
  log.summaries.push_back(summary);
  const std::vector<Diagnosis> diagnoses = sound(diagnose(log, {}));
  ASSERT_EQ(diagnoses.size(), 1u);
  EXPECT_EQ(first(diagnoses[0]), "fragmentation");
  EXPECT_TRUE(cause(diagnoses[0], "device_full"));
  EXPECT_EQ(diagnoses[0].bar->total, 8_GiB);
}

}  // namespace
}  // namespace ullage::diagnose
