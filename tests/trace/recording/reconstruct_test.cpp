// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/recording/reconstruct.h"

#include "trace/history.h"
#include "trace/training_program.h"

#include <algorithm>

namespace ullage::trace {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& one : lines) all += one + "\n";
  return all;
}

TEST(Reconstruct, FollowsAWholeHistory) {
  RecordingBuilder program;
  const Address a = program.allocate(1000_B);
  const Address b = program.allocate(2_MiB);
  program.request_free(a);
  program.complete_free(a);
  const History history(program.recording());
  EXPECT_TRUE(history.trace.complete);
  EXPECT_EQ(history.trace.inconsistencies, std::vector<std::string>{});
  ASSERT_EQ(history.trace.storages.size(), 2u);
  const Storage& first = history.trace.storages[0];
  EXPECT_EQ(first.bytes, 1000_B);
  EXPECT_EQ(first.born, EventId{1});
  EXPECT_EQ(first.tensor_died, EventId{4});
  EXPECT_EQ(first.died, EventId{5});
  EXPECT_EQ(history.trace.storages[1].address, b);
  EXPECT_EQ(history.trace.storages[1].died, history.trace.end());
  EXPECT_EQ(history.level.live[3], (2_MiB + 1000_B));
  EXPECT_EQ(history.level.live[5], 2_MiB);
  EXPECT_EQ(history.level.reserved[5], (2_MiB + 1024_B));
}

// Whatever number of oldest events is lost, the state before the rest must be found.
TEST(Reconstruct, FindsWhatWasBeforeATruncatedHistory) {
  TrainingProgram program({});
  program.build_model();
  for (int i = 0; i < 3; ++i) program.train_step();
  const Address waits = program.allocate(7_MiB);
  program.request_free(waits);
  const History whole(program.recording());
  for (std::size_t lost = 0; lost <= program.events(); ++lost) {
    const Recording file = program.recording(lost);
    const History rest(file);
    ASSERT_EQ(rest.trace.inconsistencies, std::vector<std::string>{}) << lost;
    ASSERT_EQ(rest.trace.complete, lost == 0) << lost;
    if (lost > 0) {
      ASSERT_EQ(rest.trace.live_before, whole.level.live[lost - 1]) << lost;
      ASSERT_EQ(rest.trace.reserved_before, whole.level.reserved[lost - 1]) << lost;
    }
    for (std::size_t i = lost; i < program.events(); ++i) {
      ASSERT_EQ(rest.level.live[i - lost], whole.level.live[i]) << lost << " " << i;
      ASSERT_EQ(rest.level.reserved[i - lost], whole.level.reserved[i]) << lost << " " << i;
    }
    ASSERT_EQ(rest.at(At::End).live, requested_at_end(file.devices[0])) << lost;
  }
}

TEST(Reconstruct, TakesASnapshotWithoutAHistory) {
  RecordingBuilder program;
  const StackId stack = program.stack({{"train.py", "main", 3}});
  program.allocate(3_MiB, stack);
  const Address waits = program.allocate(1_MiB, stack);
  program.free(program.allocate(5_MiB));
  program.request_free(waits);
  const History history(program.recording(program.events()));
  EXPECT_FALSE(history.trace.complete);
  EXPECT_EQ(history.trace.live_before, 4_MiB);
  EXPECT_EQ(history.trace.reserved_before, 9_MiB);
  EXPECT_EQ(history.at(At::Peak).event, std::nullopt);
  EXPECT_EQ(history.at(At::End).live, 4_MiB);
  ASSERT_EQ(history.owners(At::End).size(), 1u);
  EXPECT_EQ(history.owners(At::End)[0].name, "train.py:3 main");
  EXPECT_EQ(history.owners(At::End)[0].stack, stack);
}

TEST(Reconstruct, TakesAFreeThatWasRequestedBeforeTheHistory) {
  RecordingBuilder program;
  program.request_free(program.allocate(1_MiB));
  const Address held = program.allocate(2_MiB);
  const std::size_t lost = program.events();
  program.out_of_memory(1_GiB);
  const History history(program.recording(lost));
  for (const Storage& one : history.trace.storages) {
    EXPECT_EQ(one.tensor_died, one.address == held ? history.trace.end() : EventId{0});
    EXPECT_EQ(one.died, history.trace.end());
  }
}

TEST(Reconstruct, TakesAFreeThatIsOnlyRequested) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.request_free(a);
  const History history(program.recording());
  EXPECT_EQ(history.trace.storages[0].tensor_died, EventId{2});
  EXPECT_EQ(history.trace.storages[0].died, history.trace.end());
  EXPECT_EQ(history.at(At::End).live, 1_MiB);
}

TEST(Reconstruct, TakesAFreeThatWasNeverRequested) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.complete_free(a);
  const History history(program.recording());
  EXPECT_EQ(history.trace.storages[0].tensor_died, EventId{2});
  EXPECT_EQ(history.trace.storages[0].died, EventId{2});
  EXPECT_EQ(history.trace.inconsistencies, std::vector<std::string>{});
}

TEST(Reconstruct, SaysThatABlockIsFreedTwice) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.free(a);
  program.add({record::FreeRequest{a, 1_MiB, {}}, {}, {}});
  program.add({record::Free{a, 1_MiB, {}}, {}, {}});
  const History history(program.recording());
  EXPECT_EQ(joined(history.trace.inconsistencies),
            "event 4: freed twice: 0x7f0000000000\nevent 5: freed twice: 0x7f0000000000\n");
  EXPECT_EQ(history.at(At::End).live, Bytes{});
  EXPECT_TRUE(std::holds_alternative<event::Mark>(history.trace.events[5].what));
}

TEST(Reconstruct, SaysThatAFreeIsRequestedTwice) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.request_free(a);
  program.request_free(a);
  program.complete_free(a);
  const History history(program.recording());
  EXPECT_EQ(joined(history.trace.inconsistencies), "event 3: freed twice: 0x7f0000000000, requested before\n");
  EXPECT_EQ(history.trace.storages[0].tensor_died, EventId{2});
  EXPECT_EQ(history.trace.storages[0].died, EventId{4});
}

TEST(Reconstruct, SaysThatAStorageIsAllocatedOverALiveOne) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.add({record::Allocation{a, 1_MiB, {}}, {}, {}});
  const History history(program.recording());
  EXPECT_EQ(joined(history.trace.inconsistencies),
            "event 2: allocated where a storage is live: 0x7f0000000000, of event 1: taken as freed now\n");
  EXPECT_EQ(history.level.live[2], 1_MiB);
  EXPECT_EQ(history.trace.storages[0].died, EventId{2});
}

TEST(Reconstruct, SaysThatAFreeHasAnotherSize) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.add({record::Free{a, 2_MiB, {}}, {}, {}});
  const History history(program.recording());
  EXPECT_EQ(history.trace.inconsistencies.at(0),
            "event 2: freed with another size: 0x7f0000000000, 2097152 bytes, allocated 1048576");
  EXPECT_EQ(history.at(At::End).live, Bytes{});
}

TEST(Reconstruct, TakesAFreeOfABlockNeverSeenAsOneFromBefore) {
  RecordingBuilder program;
  program.add({record::Free{Address{0x1000}, 2_MiB, {}}, {}, {}});
  Recording file = program.recording();
  EXPECT_EQ(History(file).trace.live_before, 2_MiB);
  // If nothing was reserved before, nothing can have been live.
  program.allocate(1_MiB);
  const History history(program.recording());
  EXPECT_EQ(history.trace.live_before, 2_MiB);
  EXPECT_FALSE(history.trace.complete);
  EXPECT_EQ(joined(history.trace.inconsistencies),
            "more was live before the first event than reserved: 2097152 bytes in 1 storages, reserved 0\n");
}

TEST(Reconstruct, SaysThatSegmentsDoNotAddUp) {
  RecordingBuilder program;
  program.allocate(1_MiB);
  Recording file = program.recording();
  file.devices[0].segments.clear();
  const History history(file);
  EXPECT_EQ(joined(history.trace.inconsistencies),
            "live by the events, no block at the end: 1 storages, 0 blocks: counted as live\n"
            "segments do not add up: 0 bytes at the end, the events reserve 1048576 bytes, at the least 0\n");
  EXPECT_EQ(history.at(At::End).reserved, 1_MiB);
}

TEST(Reconstruct, SaysThatABlockAtTheEndIsFreeByTheEvents) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  Recording file = program.recording();
  file.devices[0].events.push_back({record::Free{a, 1_MiB, {}}, {}, {}});
  const History history(file);
  EXPECT_EQ(joined(history.trace.inconsistencies),
            "live at the end, free by the events: 0x7f0000000000, 1048576 bytes: not counted\n");
  EXPECT_EQ(history.at(At::End).live, Bytes{});
}

TEST(Reconstruct, NeverReleasesMoreThanIsReserved) {
  RecordingBuilder program;
  program.add({record::SegmentFree{Address{0x1000}, 3_MiB, {}}, {}, {}});
  program.add({record::SegmentAllocation{Address{0x1000}, 2_MiB, {}}, {}, {}});
  Recording file = program.recording();
  file.devices[0].segments.clear();
  const History history(file);
  EXPECT_EQ(history.trace.reserved_before, 3_MiB);
  EXPECT_EQ(history.level.reserved[0], Bytes{});
  EXPECT_EQ(history.level.reserved[1], 2_MiB);
  EXPECT_EQ(history.trace.inconsistencies.size(), 1u);
}

TEST(Reconstruct, CountsSizesThatCannotBeAsNone) {
  RecordingBuilder program;
  for (std::uint64_t i = 0; i < 5; ++i) {
    program.add({record::Allocation{Address{i}, Bytes{UINT64_MAX}, {}}, {}, {}});
    program.add({record::SegmentAllocation{Address{i}, Bytes{UINT64_MAX}, {}}, {}, {}});
    program.add({record::Free{Address{i}, Bytes{UINT64_MAX - 1}, {}}, {}, {}});
  }
  const History history(program.recording());
  EXPECT_EQ(history.at(At::Peak).live, Bytes{});
  EXPECT_NE(joined(history.trace.inconsistencies).find("sizes that cannot be"), std::string::npos);
}

TEST(Reconstruct, TellsAKindOfInconsistencyAFewTimes) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.free(a);
  for (int i = 0; i < 1000; ++i) program.add({record::Free{a, 1_MiB, {}}, {}, {}});
  const History history(program.recording());
  ASSERT_EQ(history.trace.inconsistencies.size(), 4u);
  EXPECT_EQ(history.trace.inconsistencies.back(), "freed twice: 997 more");
}

TEST(Reconstruct, KeepsTheAnnotationsOfItsDevice) {
  Recording file = RecordingBuilder().recording();
  file.annotations = {{true, "here", 0, {1}}, {true, "elsewhere", 1, {2}}};
  const Trace trace = reconstruct(file.devices[0], file);
  ASSERT_EQ(trace.annotations.size(), 1u);
  EXPECT_EQ(trace.annotations[0].name, "here");
}

}  // namespace
}  // namespace ullage::trace
