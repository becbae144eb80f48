// SPDX-License-Identifier: Apache-2.0
// Snapshots that are damaged, contradict themselves, or are malicious.
#include "ullage/read/snapshot/snapshot.h"

#include "read/pickle_text.h"
#include "real.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

namespace ullage::read {
namespace {

using pickled::dict;
using pickled::integer;
using pickled::list;
using pickled::text;

std::string refusal_of_snapshot(const std::string& value) {
  const auto recording = read_snapshot(pickled::bytes(pickled::whole(value)), "x.pickle");
  if (recording) return "read";
  EXPECT_EQ(recording.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(recording.error().where.rfind("x.pickle:", 0), 0u) << recording.error().text();
  return recording.error().message;
}

bool snapshot_says(const std::string& said, const std::string& what) { return said.find(what) != std::string::npos; }

// A snapshot of one event (or of one segment with one block) in which one field is changed.
std::string with_event(const std::string& key, const std::string& value) {
  std::string made =
      dict({{"action", text("alloc")}, {"addr", integer(4096)}, {"size", integer(512)}, {"stream", integer(0)}});
  made += text(key) + value + "s";
  return dict({{"device_traces", list({list({made})})}});
}
std::string with_segment(const std::string& key, const std::string& value, const std::string& block_key = "x",
                         const std::string& block_value = "N") {
  const std::string block = dict({{"address", integer(4096)}, {"size", integer(512)}, {"state", text("inactive")}}) +
                            text(block_key) + block_value + "s";
  return dict(
      {{"segments", list({dict({{"address", integer(4096)}, {"total_size", integer(512)}, {"blocks", list({block})}}) +
                          text(key) + value + "s"})}});
}
std::string with_block(const std::string& key, const std::string& value) { return with_segment("x", "N", key, value); }

TEST(SnapshotDamage, CutOffAtEveryByteIsRefused) {
  const auto file = bytes_of(data_folder() / "snapshots" / "albi2_two_segments.pickle");
  ASSERT_TRUE(read_snapshot(file, "x"));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(),
                                     file.begin() + std::ptrdiff_t(size));  // a copy, so that ASan sees reads past it
    EXPECT_FALSE(read_snapshot(cut, "x")) << size;
  }
}

TEST(SnapshotDamage, AnyByteChangedIsReadOrRefused) {
  const auto file = bytes_of(data_folder() / "snapshots" / "albi2_two_segments.pickle");
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const unsigned to : {0u, 1u, 0x28u, 0x2eu, 0x65u, 0x68u, 0x75u, 0x80u, 0x8au, 0xffu}) {
      auto changed = file;
      changed[at] = std::byte(to);
      (void)read_snapshot(changed, "x");
    }
  }
}

TEST(SnapshotDamage, PicklesOfOtherThingsAreRefused) {
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(integer(5)), "the pickle is 5, not a dict"));
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"weights", list({})}})), "neither segments nor device_traces"));
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(list({integer(5)})), "a segment is 5, not a dict"));
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"segments", integer(1)}})), "segments is not a list"));
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"device_traces", dict({})}})), "device_traces is not a list"));
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"device_traces", list({integer(1)})}})),
                            "the events of a device are not a list"));
}

TEST(SnapshotDamage, SizesThatAreNoSizesAreRefused) {
  ASSERT_EQ(refusal_of_snapshot(with_event("size", integer(1))), "read");
  EXPECT_EQ(refusal_of_snapshot(with_event("size", integer(-5))), "size of an event is -5, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_event("size", pickled::real())),
            "size of an event is a float, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_event("size", "\x8a\x0b" + pickled::little(0, 8) + "\1\2\3")),
            "size of an event is an integer of more than 64 bits, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_event("size", "N")), "size of an event is None, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_event("size", text("12"))), "size of an event is a string, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_event("size", list({}))), "size of an event is a list, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_block("size", integer(-512))), "size of a block is -512, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_block("requested_size", pickled::real())),
            "requested_size of a block is a float, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_segment("total_size", integer(-1))),
            "total_size of a segment is -1, not a number of bytes");
  EXPECT_EQ(refusal_of_snapshot(with_segment("active_size", pickled::real())),
            "active_size of a segment is a float, not a number of bytes");
}

TEST(SnapshotDamage, OtherFieldsOfTheWrongKindAreRefused) {
  EXPECT_EQ(refusal_of_snapshot(with_event("addr", "N")), "addr of an event is None, not an address");
  EXPECT_EQ(refusal_of_snapshot(with_event("addr", pickled::real())),
            "addr of an event is a float, not an integer of 64 bits");
  EXPECT_EQ(refusal_of_snapshot(with_event("time_us", pickled::real())),
            "time_us of an event is a float, not an integer of 64 bits");
  EXPECT_EQ(refusal_of_snapshot(with_event("action", integer(1))), "the action of an event is not a string");
  EXPECT_EQ(refusal_of_snapshot(with_event("frames", integer(1))), "the frames of a stack are not a list");
  EXPECT_EQ(refusal_of_snapshot(with_event("frames", list({integer(1)}))), "a stack frame is 1, not a dict");
  EXPECT_EQ(refusal_of_snapshot(with_block("state", text("molten"))), "state of a block is none of those known");
  EXPECT_EQ(refusal_of_snapshot(with_segment("segment_pool_id", integer(1))), "segment_pool_id is not a pair");
  EXPECT_EQ(refusal_of_snapshot(with_segment("device", integer(-1))),
            "device of a segment is -1, not a device's number");
  EXPECT_EQ(refusal_of_snapshot(with_segment("device", integer(1'000'000))),
            "device of a segment is 1000000, not a device's number");
  EXPECT_EQ(refusal_of_snapshot(with_segment("blocks", "N")), "the blocks of a segment are not a list");
}

TEST(SnapshotDamage, RangesBeyondTheAddressSpaceAreRefused) {
  EXPECT_EQ(refusal_of_snapshot(with_event("addr", integer(-1))),
            "an event of 512 bytes at 18446744073709551615 ends beyond 64 bits");
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(with_segment("address", integer(-1))), "ends beyond 64 bits"));
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(with_block("address", integer(-1))), "ends beyond 64 bits"));
}

TEST(SnapshotDamage, SizesThatTogetherPass63BitsAreRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refusal_of_snapshot(with_event("size", integer(kMost))), "read");
  EXPECT_TRUE(snapshot_says(
      refusal_of_snapshot(with_event("size", "\x8a\x09" + pickled::little(UINT64_MAX, 8) + std::string(1, '\0'))),
      "all sizes together pass 9223372036854775808 bytes"));
  const std::string half = dict({{"action", text("alloc")}, {"addr", integer(0)}, {"size", integer(kMost / 2 + 1)}});
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"device_traces", list({list({half, half})})}})),
                            "all sizes together pass"));
}

// A file of some kilobytes could otherwise name 2^40 events.
TEST(SnapshotDamage, EventsNamedOverAndOverAreRefused) {
  std::string traces =
      "](" + list({dict({{"action", text("alloc")}, {"addr", integer(0)}, {"size", integer(0)}})}) + "\x94";
  traces += pickled::times(900, std::string("h\0", 2)) + "e";
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"device_traces", traces}})), "over and over"));
}

// A list of frames that contains itself, and an event whose frames are the list of events.
TEST(SnapshotDamage, CyclesAreRefused) {
  EXPECT_EQ(refusal_of_snapshot(with_event("frames", "]\x94h" + std::string(1, '\0') + "a")),
            "a stack frame is a list, not a dict");
  const std::string events = "]\x94(" + dict({{"action", text("alloc")}, {"addr", integer(0)}, {"size", integer(0)}}) +
                             text("frames") + std::string("h\0", 2) + "se";
  EXPECT_EQ(refusal_of_snapshot(dict({{"device_traces", list({events})}})),
            "read");  // the event is a frame without a name
  EXPECT_EQ(refusal_of_snapshot("]\x94(h" + std::string(1, '\0') + "e"), "a segment is a list, not a dict");
}

TEST(SnapshotDamage, DeepNestingIsRefused) {
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(pickled::times(1'000'000, "]") + pickled::times(999'999, "a")),
                            "a segment is a list"));
}

// 100,000 dicts share one name of 20 kilobytes. Each distinct frame must be made only once.
TEST(SnapshotDamage, SharedLongNamesAreKeptOnce) {
  std::string frames = "](" + text(std::string(20'000, 'n')) + "\x94" + text("name") + "\x94" + "00";
  const std::string frame = "}" + std::string("h\1h\0s", 5);
  frames += pickled::times(100'000, frame) + "e";
  const auto recording = read_snapshot(pickled::bytes(pickled::whole(with_event("frames", frames))), "x");
  ASSERT_TRUE(recording) << recording.error().text();
  EXPECT_EQ(recording->stacks.frame_count(), 1u);
  EXPECT_EQ(recording->stacks.frame(trace::FrameId{0}).function, std::string(16'384, 'n') + "...");
}

TEST(SnapshotDamage, NamesCannotSteerATerminal) {
  const std::string frame =
      dict({{"filename", text("\x1b]0;x\x07.py")}, {"name", text("a\nb\xff")}, {"line", integer(-1)}});
  const auto recording = read_snapshot(pickled::bytes(pickled::whole(with_event("frames", list({frame})))), "x");
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->stacks.frame(trace::FrameId{0}), (trace::Frame{"?]0;x?.py", "a?b\xef\xbf\xbd", 0}));
}

TEST(SnapshotDamage, DictsOfThousandsOfKeysAreRefused) {
  std::string many = "}(";
  for (int i = 0; i < 1025; ++i) many += text("key " + std::to_string(i)) + "N";
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(many + "u"), "1025 keys"));
}

TEST(SnapshotDamage, MoreDevicesThanThereAreIsRefused) {
  EXPECT_TRUE(snapshot_says(refusal_of_snapshot(dict({{"device_traces", "](" + pickled::times(1025, "]") + "e"}})),
                            "at most 1024 devices"));
}

TEST(SnapshotDamage, ContradictionsAreToldAndCounted) {
  std::string segments = "](";
  for (std::int64_t i = 0; i < 5; ++i) {
    const std::string block = dict({{"address", integer(0x1000 * i + 1)},
                                    {"size", integer(100)},
                                    {"requested_size", integer(200)},
                                    {"state", text("active_allocated")}});
    segments += dict({{"address", integer(0x1000 * i)},
                      {"total_size", integer(0x1001)},
                      {"allocated_size", integer(7)},
                      {"active_size", integer(100)},
                      {"requested_size", integer(200)},
                      {"blocks", list({block})}});
  }
  const auto recording = read_snapshot(pickled::bytes(pickled::whole(segments + "e") + "more"), "x");
  ASSERT_TRUE(recording) << recording.error().text();
  const auto& lines = recording->inconsistencies;
  const auto told = [&](const std::string& line) { return std::ranges::count(lines, line); };
  EXPECT_EQ(lines.size(), 6u * 4 + 1);  // for each kind three lines and one with the number of the others
  EXPECT_EQ(told("segment at 0x1000: its blocks add up to 100 bytes, its total_size is 4097"), 1);
  EXPECT_EQ(told("and 2 more segments whose blocks do not add up"), 1);
  EXPECT_EQ(told("block at 0x1001: expected at 0x1000"), 1);
  EXPECT_EQ(told("segment at 0x1000: its allocated_size is 7, its blocks say 100"), 1);
  EXPECT_EQ(told("block at 0x1001: 100 bytes are not a multiple of 512"), 1);
  EXPECT_EQ(told("block at 0x1001: 200 bytes were requested, it has 100"), 1);
  EXPECT_EQ(told("segment at 0x1000 on device 0: the one before ends at 0x1001"), 1);
  EXPECT_EQ(told("4 bytes after the end of the pickle were not read"), 1);
}

}  // namespace
}  // namespace ullage::read
