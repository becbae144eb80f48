// SPDX-License-Identifier: Apache-2.0
// Replays histories that PyTorch recorded on real cards through the model. Small ones are in the repository as plain
// text; all are in ../shared/real, and those tests are skipped if the folder is missing.
#include "ullage/read/snapshot/snapshot.h"
#include "ullage/sim/replay.h"

#include "real.h"
#include "recorded.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ullage::sim {
namespace {

struct Expected {
  const char* file;
  std::size_t events;
  bool reconstructed;
  std::uint64_t segments;
  Bytes reserved_peak;
};

void expect_replayed(const trace::Recording& recording, const Expected& expected) {
  ASSERT_EQ(recording.devices.size(), 1u) << expected.file;
  const Replay result = replay(recording.devices[0], recording);
  EXPECT_TRUE(result.complete) << expected.file << ": " << result.why_not;
  EXPECT_FALSE(result.first_difference) << expected.file << ": event " << result.first_difference->event.value << ": "
                                        << result.first_difference->what;
  EXPECT_EQ(result.events, expected.events) << expected.file;
  EXPECT_EQ(result.reconstructed, expected.reconstructed) << expected.file;
  EXPECT_EQ(result.segments_real, expected.segments) << expected.file;
  EXPECT_EQ(result.segments_model, expected.segments) << expected.file;
  EXPECT_EQ(result.reserved_peak_real, expected.reserved_peak) << expected.file;
  EXPECT_EQ(result.reserved_peak_model, expected.reserved_peak) << expected.file;
  EXPECT_TRUE(result.same_end) << expected.file;
}

TEST(RealHistory, SmallOnesAreEqualSegmentForSegment) {
  const Expected files[] = {
      {"niu_forward_100.txt", 2304, false, 31, 442_MiB},
      {"shreyansh_grad.txt", 33, false, 7, 4234_MiB},
      {"silmont.txt", 97, false, 9, 3606_MiB},
      {"maphsge4.txt", 4496, true, 13, 2648_MiB},
      {"kkaitlyn_forward_128.txt", 4657, true, 289, 18756_MiB},
  };
  for (const Expected& expected : files) {
    expect_replayed(read_recorded_text(data_folder() / "sim" / expected.file), expected);
  }
}

// The table of tests/data/sim/README.md.
const Expected kAll[] = {
    {"MAGMA27__assignment2-systems__memory_snapshot.pickle", 5163, true, 0, 13524_MiB},
    {"Maphsge4__select_n__snapshot.5a601013.pickle", 4496, true, 13, 2648_MiB},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_and_backward_memory_snapshot_100."
     "pickle",
     11300, false, 65, 750_MiB},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_and_backward_memory_snapshot_200_"
     "mixed_"
     "precision.pickle",
     12976, false, 88, 1150_MiB},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_memory_snapshot_100.pickle", 2304,
     false, 31, 442_MiB},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_memory_snapshot_200_mixed_precision."
     "pickle",
     2950, false, 47, 708_MiB},
    {"Wedsonlin__assignment2-systems__results__medium_512_inference_memory_snapshot.pickle", 4998, true, 0, 1890_MiB},
    {"Wedsonlin__assignment2-systems__results__medium_512_training_memory_snapshot.pickle", 22332, true, 1, 12074_MiB},
    {"cranberrii__ftcourse__memory_snapshot.pickle", 10307, true, 152, 6172_MiB},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_forward.pickle", 4657, true, 289, 18756_MiB},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_forward_mixed.pickle", 5992, true, 461, 23122_MiB},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_fullstep.pickle", 19342, true, 783, 58280_MiB},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx256_fullstep_.pickle", 20128, true, 791, 58280_MiB},
    {"kkaitlyn111__cs336-a2-systems__memory_small_forward.pickle", 8507, true, 3, 1056_MiB},
    {"notHanmin__assignment2-systems__memory_snapshot.pickle", 19464, true, 0, 22738_MiB},
    {"shreyansh26__MLSys-Experiments__model_memory_usage__profile_grad.pkl", 33, false, 7, 4234_MiB},
    {"shreyansh26__MLSys-Experiments__model_memory_usage__profile_no_grad.pkl", 33, false, 7, 4234_MiB},
    {"silmont2000__assignment2-systems__mem_snapshot.pickle", 97, false, 9, 3606_MiB},
    {"silmont2000__assignment2-systems__memory_forward_bf16_128.pickle", 2811, true, 0, 822_MiB},
    {"silmont2000__assignment2-systems__memory_forward_fp32_128.pickle", 2043, true, 0, 582_MiB},
};

trace::Recording read_real(const std::string& file) {
  const auto path = real_folder() / "snapshots" / file;
  auto recording = read::read_snapshot(bytes_of(path), file);
  EXPECT_TRUE(recording.ok()) << recording.error().text();
  return recording.ok() ? std::move(*recording) : trace::Recording{};
}

TEST(RealHistory, AllAreEqualSegmentForSegment) {
  ULLAGE_NEEDS_REAL_FILES();
  for (const Expected& expected : kAll) expect_replayed(read_real(expected.file), expected);
}

// The file is a made-up fixture whose blocks do not fill their segments.
TEST(RealHistory, TheOneThatIsNoneSaysWhy) {
  ULLAGE_NEEDS_REAL_FILES();
  const trace::Recording recording = read_real("facebookresearch__mosaic__test__snapshots__output.pickle");
  ASSERT_EQ(recording.devices.size(), 1u);
  const Replay result = replay(recording.devices[0], recording);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.why_not, "blocks that do not add up to their segment at 0x1aad6308e1, 50.00 MiB");
}

// If the file begins with the process, the model, starting empty, reserves what the card's allocator reserved.
TEST(RealHistory, WhatIfNothingChangedIsWhatWas) {
  for (const char* file : {"niu_forward_100.txt", "shreyansh_grad.txt", "silmont.txt"}) {
    const trace::Recording recording = read_recorded_text(data_folder() / "sim" / file);
    const Replay was = replay(recording.devices[0], recording);
    const WhatIf now = what_if(recording.devices[0], {});
    EXPECT_EQ(now.reserved_peak, was.reserved_peak_real) << file;
    EXPECT_EQ(now.segments, was.segments_real) << file;
  }
}

}  // namespace
}  // namespace ullage::sim
