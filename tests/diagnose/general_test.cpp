// SPDX-License-Identifier: Apache-2.0

// Judges words of a lack of memory that programs use whom no table knows. Each quote is short and has its source.

#include "check.h"

#include "ullage/read/log/log.h"

#include <gtest/gtest.h>

namespace ullage::diagnose {
namespace {

TEST(General, WordsThatNameTheHostAreTheHosts) {
  for (const char* text :
       {"cv2.error: OpenCV(4.6.0) alloc.cpp:73: error: (-4:Insufficient memory) Failed to allocate 4672512 bytes in "
        "function 'OutOfMemoryError'",                             // ultralytics/yolov5#10276
        "Malloc failed! Crashed! Probably run out of memory."}) {  // Pappulab/LASSI#1
    const std::vector<Diagnosis> all = diagnoses_of(text);
    ASSERT_EQ(all.size(), 1u) << text;
    EXPECT_EQ(first(all[0]), "host_memory") << text;
    EXPECT_GT(all[0].causes.at(0).confidence, 0.5) << text;
  }
  EXPECT_EQ(
      diagnoses_of("error: (-4:Insufficient memory) Failed to allocate 4672512 bytes in function 'OutOfMemoryError'")
          .at(0)
          .facts.requested,
      Bytes{4672512});
}

TEST(General, AProcessThatWasEndedIsTheHosts) {
  for (const char* text : {"error: Could not compile `http`.\nCaused by:\n  process didn't exit successfully: `rustc "
                           "--crate-name http` (signal: 9, SIGKILL: kill)",  // hyperium/http#341
                           "State: OUT_OF_MEMORY (exit code 0)"}) {          // jdblischak/smk-simple-slurm#29
    const std::vector<Diagnosis> all = diagnoses_of(text);
    ASSERT_EQ(all.size(), 1u) << text;
    EXPECT_EQ(first(all[0]), "host_memory") << text;
  }
}

TEST(General, EachWayToPrintSignal9IsAKill) {
  for (const char* text :
       {"collect2: fatal error: ld terminated with signal 9 [Killed]", "command terminated by signal 9",
        "c++: internal compiler error: Killed (program cc1plus)", "npm ERR! signal SIGKILL",
        "Process 12 terminated with exit code: SIGKILL", "exitcode  : -9 (pid: 123)", "Exited with status 137"}) {
    const std::vector<Diagnosis> all = diagnoses_of(text);
    ASSERT_EQ(all.size(), 1u) << text;
    EXPECT_EQ(first(all[0]), "host_memory") << text;
  }
  for (const char* text : {"exitcode  : 1 (pid: 123)", "step terminated with signal 90", "returncode: -11"}) {
    EXPECT_FALSE(read::read_log(text, "text").ok()) << text;
  }
}

TEST(General, WordsThatNameTheDeviceAreTheDevices) {
  // jwohlwend/boltz#575: "The error is because of insufficient GPU memory."
  EXPECT_EQ(first(diagnoses_of("Predicting DataLoader 0:   0%|   | 0/1 [00:00<?, ?it/s]| WARNING: ran out of memory, "
                               "skipping batch")
                      .at(0)),
            "device_full");
  // MouseLand/Kilosort#506
  EXPECT_EQ(first(diagnoses_of("Out of memory on device. To view more detail about available memory on the GPU, use "
                               "'gpuDevice()'.")
                      .at(0)),
            "device_full");
  // sgl-project/sglang-jax#1360
  const std::vector<Diagnosis> all = diagnoses_of("Prefill out of memory. Try to lower your batch size.");
  EXPECT_EQ(all.at(0).tool->id, "sglang");
}

TEST(General, PlainWordsLeaveOpenWhoseMemoryItWas) {
  for (const char* text : {"ERROR: Memory allocation failed for QQ in the routine DUMP",  // firemodels/fds#621
                           "JIT session error: Cannot allocate memory"}) {                // sys-bio/roadrunner#1222
    const std::vector<Diagnosis> all = diagnoses_of(text);
    ASSERT_EQ(all.size(), 1u) << text;
    EXPECT_EQ(first(all[0]), "host_memory") << text;
    EXPECT_LE(all[0].causes.at(0).confidence, 0.5) << text;
    EXPECT_TRUE(cause(all[0], "device_full")) << text;
  }
  // A device in the lines around them turns the order round. Made up.
  EXPECT_EQ(first(diagnoses_of("Using GPU 0\nERROR: Memory allocation failed for QQ in the routine DUMP").at(0)),
            "device_full");
}

TEST(General, PlainWordsCountOnlyWithoutAnotherError) {
  const std::string plain = "ERROR: Memory allocation failed for QQ in the routine DUMP\n";
  const std::string known = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n";
  for (const std::string& text : {plain + known, known + plain}) {
    const auto log = read::read_log(text, "text");
    ASSERT_TRUE(log.ok());
    ASSERT_EQ(log->errors.size(), 1u) << text;
    EXPECT_EQ(log->errors[0].teller, trace::Teller::Cuda) << text;
  }
  // A paragraph about errors is none: a guide to the kernel's killer, shortened.
  EXPECT_FALSE(
      read::read_log("It fires when an allocation could not be satisfied and there was nothing left to reclaim, "
                     "and the victim is chosen by its score, not necessarily the process that triggered it. "
                     "This is the opposite of Cannot allocate memory, an error that rejects an allocation up "
                     "front before any process dies.",
                     "text")
          .ok());
}

}  // namespace
}  // namespace ullage::diagnose
