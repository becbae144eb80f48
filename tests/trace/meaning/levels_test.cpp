// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/levels.h"

#include "trace/history.h"
#include "trace/recording_builder.h"

namespace ullage::trace {
namespace {

TEST(Levels, OfNothingAreZero) {
  const History history(RecordingBuilder().recording());
  EXPECT_EQ(history.at(At::Peak).live, Bytes{});
  EXPECT_EQ(history.at(At::End).event, std::nullopt);
  EXPECT_EQ(find(history.trace, history.level, At::OutOfMemory), std::nullopt);
  EXPECT_TRUE(history.owners(At::Peak).empty());
  EXPECT_FALSE(history.trace.complete);
}

TEST(Levels, PeakIsTheFirstOfSeveral) {
  RecordingBuilder program;
  const Address a = program.allocate(1_MiB);
  program.free(a);
  program.allocate(1_MiB);
  const History history(program.recording());
  EXPECT_EQ(history.at(At::Peak).event, EventId{1});
  EXPECT_EQ(history.at(At::Peak).live, 1_MiB);
}

TEST(Levels, PeakMayBeBeforeTheFirstEvent) {
  RecordingBuilder program;
  const Address a = program.allocate(8_MiB);
  program.allocate(1_MiB);
  program.free(a);
  const History history(program.recording(4));  // loses the request to free as well
  EXPECT_EQ(history.at(At::Peak).event, EventId{0});
  const History later(program.recording(5));
  EXPECT_EQ(later.at(At::Peak).event, std::nullopt);
  EXPECT_EQ(later.at(At::Peak).live, 9_MiB);
  EXPECT_EQ(later.at(At::Peak).reserved, 9_MiB);
}

TEST(Levels, FindTheLastOutOfMemoryEvent) {
  RecordingBuilder program;
  program.allocate(1_MiB);
  program.out_of_memory(1_GiB);
  program.allocate(2_MiB);
  program.out_of_memory(2_GiB);
  program.allocate(4_MiB);
  const History history(program.recording());
  EXPECT_EQ(history.at(At::OutOfMemory).event, EventId{5});
  EXPECT_EQ(history.at(At::OutOfMemory).live, 3_MiB);
  EXPECT_EQ(history.at(At::End).live, 7_MiB);
}

TEST(Levels, ReservedIsLiveWhereNoSegmentsAreKnown) {
  Trace trace;
  trace.storages = {{1_MiB, {}, {}, {}, kNoOp, {0}, {1}, {1}, false}};
  trace.events = {{event::Allocation{{0}}, {}, {}}, {event::Free{{0}}, {}, {}}};
  const Levels level = levels(trace);
  EXPECT_EQ(level.reserved, level.live);
}

TEST(OwnersAt, AreByCategoryAndNameLargestFirst) {
  RecordingBuilder program;
  const StackId first = program.stack({{"lib/site-packages/torch/x.py", "f", 1}, {"a.py", "main", 3}});
  const StackId second = program.stack({{"lib/site-packages/torch/x.py", "f", 2}, {"a.py", "main", 3}});
  const StackId other = program.stack({{"b.py", "main", 4}});
  program.allocate(1_MiB, first);
  program.allocate(2_MiB, second);
  program.allocate(4_MiB, other);
  program.allocate(1_MiB, first);
  const std::vector<Owner> owners = History(program.recording()).owners(At::Peak);
  ASSERT_EQ(owners.size(), 2u);
  EXPECT_EQ(owners[0].name, "a.py:3 main");
  EXPECT_EQ(owners[0].bytes, 4_MiB);
  EXPECT_EQ(owners[0].storages, 3u);
  EXPECT_EQ(owners[0].stack, second);  // that of the largest storage
  EXPECT_EQ(owners[1].name, "b.py:4 main");
}

}  // namespace
}  // namespace ullage::trace
