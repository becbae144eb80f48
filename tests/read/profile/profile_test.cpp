// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile.h"

#include "read/profile_trace.h"
#include "real.h"
#include "ullage/read/file/gzip.h"
#include "ullage/read/profile/profile_device.h"

#include <algorithm>
#include <limits>

namespace ullage::read {
namespace {

// Checks what must hold for every device's trace, whatever the file says.
void check(const trace::Profile& profile) {
  for (const auto& device : profile.devices) {
    const trace::Trace& trace = device.trace;
    Bytes before;
    for (const auto& storage : trace.storages) {
      if (storage.from_before) before += storage.bytes;
      EXPECT_LE(storage.born.value, storage.died.value);
      EXPECT_LE(storage.died, trace.end());
      EXPECT_TRUE(storage.op == trace::kNoOp || storage.op.value < trace.ops.size());
      if (!storage.from_before) {
        EXPECT_TRUE(std::holds_alternative<trace::event::Allocation>(trace.events[storage.born.value].what));
      }
      if (storage.died < trace.end()) {
        EXPECT_TRUE(std::holds_alternative<trace::event::Free>(trace.events[storage.died.value].what));
      }
    }
    EXPECT_EQ(before, trace.live_before);
    for (std::size_t i = 1; i < trace.events.size(); ++i) EXPECT_LE(trace.events[i - 1].at, trace.events[i].at);
    EXPECT_GE(peak(trace), trace.live_before);
  }
}

std::vector<Bytes> live(const trace::Trace& trace) {
  std::vector<Bytes> levels;
  Bytes level = trace.live_before;
  for (const auto& event : trace.events) {
    if (const auto* born = std::get_if<trace::event::Allocation>(&event.what)) {
      level += trace.storages[born->storage.value].bytes;
    } else if (const auto* died = std::get_if<trace::event::Free>(&event.what)) {
      level -= trace.storages[died->storage.value].bytes;
    } else {
      continue;
    }
    levels.push_back(level);
  }
  return levels;
}

template <class What>
std::size_t count(const trace::Trace& trace) {
  return static_cast<std::size_t>(std::count_if(trace.events.begin(), trace.events.end(),
                                                [](const auto& e) { return std::holds_alternative<What>(e.what); }));
}

trace::Profile read_profile_file(const std::filesystem::path& path) {
  const auto content = bytes_of(path);
  std::string text(reinterpret_cast<const char*>(content.data()), content.size());
  if (is_gzip(content)) {
    auto unzipped = gunzip(content, path.string());
    EXPECT_TRUE(unzipped);
    text = *unzipped;
  }
  auto profile = read_profile(text, path.string());
  EXPECT_TRUE(profile) << profile.error().text();
  check(*profile);
  return *profile;
}

TEST(Profile, MatchesFreesByAddress) {
  const auto profile = ProfileText()
                           .memory(1, 512, 0x1000, 512, 2097152)
                           .memory(2, 1024, 0x2000, 1536, 2097152)
                           .memory(3, -512, 0x1000, 1024, 2097152)
                           .memory(4, 512, 0x1000, 1536, 2097152)
                           .read();
  check(profile);
  ASSERT_EQ(profile.devices.size(), 1u);
  const auto& device = profile.devices[0];
  EXPECT_EQ(device.type, 1);
  EXPECT_EQ(device.name, "Some GPU");
  EXPECT_EQ(device.total, 8_GiB);
  EXPECT_TRUE(device.addresses);
  EXPECT_TRUE(device.totals);
  EXPECT_TRUE(device.trace.complete);
  EXPECT_EQ(live(device.trace), (std::vector<Bytes>{512_B, 1536_B, 1024_B, 1536_B}));
  ASSERT_EQ(device.trace.storages.size(), 3u);
  EXPECT_EQ(device.trace.storages[0].died, EventId{2});
  EXPECT_EQ(device.trace.storages[1].died, device.trace.end());
  EXPECT_EQ(device.trace.storages[2].address, Address{0x1000});
  EXPECT_TRUE(device.trace.inconsistencies.empty());
}

TEST(Profile, OrdersEventsByTimeAndThoseOfOneTimeByTheFile) {
  const auto profile =
      ProfileText().memory(10, -512, 0x1000, 1024).memory(5, 512, 0x1000, 512).memory(5, 1024, 0x2000, 1536).read();
  check(profile);
  EXPECT_EQ(live(profile.devices[0].trace), (std::vector<Bytes>{512_B, 1536_B, 1024_B}));
}

TEST(Profile, TimesKeepTheirDecimals) {
  // Both times round to the same double.
  ProfileText text;
  text.memory(0, 512, 0x1000).memory(0, -512, 0x1000);
  std::string json = text.text();
  json.replace(json.find("\"ts\":0.0"), 8, "\"ts\":1623142623460121.002");
  json.replace(json.find("\"ts\":0.0"), 8, "\"ts\":1623142623460121.001");
  const auto profile = read_profile(json, "x");
  ASSERT_TRUE(profile);
  EXPECT_TRUE(std::holds_alternative<trace::event::Free>(profile->devices[0].trace.events[0].what));
  EXPECT_EQ(profile->devices[0].trace.events[0].at, trace::Microseconds{1623142623460121});
}

TEST(Profile, TotalsSayWhatWasLiveBefore) {
  const auto profile = ProfileText()
                           .memory(1, 512, 0x1000, 10752, 4194304)
                           .memory(2, -2048, 0x9000, 8704, 4194304)
                           .memory(3, 512, 0x2000, 9216, 6291456)
                           .memory(4, -512, 0x2000, 8704, 4194304)
                           .read();
  check(profile);
  const trace::Trace& trace = profile.devices[0].trace;
  EXPECT_EQ(trace.live_before, 10240_B);
  EXPECT_EQ(live(trace), (std::vector<Bytes>{10752_B, 8704_B, 9216_B, 8704_B}));
  EXPECT_EQ(trace.reserved_before, 4194304_B);
  EXPECT_EQ(count<trace::event::ReservedMore>(trace), 1u);
  EXPECT_EQ(count<trace::event::ReservedLess>(trace), 1u);
  EXPECT_FALSE(trace.complete);
  EXPECT_TRUE(trace.inconsistencies.empty());
}

TEST(Profile, WithoutAddressesTheNewestOfTheSizeIsFreed) {
  const auto profile = ProfileText().memory(1, 512).memory(2, 512).memory(3, -512).memory(4, -1024).read();
  check(profile);
  const auto& device = profile.devices[0];
  EXPECT_FALSE(device.addresses);
  EXPECT_FALSE(device.totals);
  EXPECT_EQ(device.trace.storages[1].died, EventId{2});
  EXPECT_EQ(device.trace.storages[0].died, device.trace.end());
  EXPECT_EQ(device.trace.live_before, 1024_B);
  EXPECT_EQ(profile.torch, "1.8 or 1.9");
}

TEST(Profile, TheOpsOfTheThreadOwnWhatTheyAllocate) {
  const auto profile = ProfileText()
                           .memory(5, 512, 0x1000)
                           .memory(20, 512, 0x2000)
                           .memory(31, 512, 0x3000)
                           .span("cpu_op", "aten::empty", 4, 2)
                           .span("cpu_op", "aten::linear", 1, 9)
                           .span("cpu_op", "aten::elsewhere", 0, 100, 8)
                           .span("python_function", "train.py(12): main", 0, 50)
                           .span("python_function", "<built-in function len>", 0, 50)
                           .span("cpu_op", "aten::ends_now", 29, 2)
                           .read();
  check(profile);
  const trace::Trace& trace = profile.devices[0].trace;
  ASSERT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(trace.ops[trace.storages[0].op.value].name, "aten::empty");
  EXPECT_EQ(trace.storages[1].op, trace::kNoOp);
  EXPECT_EQ(trace.ops[trace.storages[2].op.value].name, "aten::ends_now");
  EXPECT_EQ(trace.storages[2].born, EventId{trace.events.size() - 2}) << "its op ends behind it";
  const auto frames = profile.stacks.frames(trace.storages[0].stack);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(profile.stacks.frame(frames[0]), (trace::Frame{"??", "aten::empty", 0}));
  EXPECT_EQ(profile.stacks.frame(frames[1]), (trace::Frame{"??", "aten::linear", 0}));
  EXPECT_EQ(profile.stacks.frame(frames[2]), (trace::Frame{"train.py", "main", 12}));
  EXPECT_EQ(count<trace::event::OpBegin>(trace), 3u);
  EXPECT_EQ(count<trace::event::OpEnd>(trace), 3u);
}

TEST(Profile, OfOpsThatBeginTogetherTheLongerIsTheOuter) {
  for (const bool inner_first : {false, true}) {
    ProfileText text;
    text.memory(5, 512, 0x1000).span("cpu_op", inner_first ? "aten::inner" : "aten::outer", 4, inner_first ? 2 : 9);
    text.span("cpu_op", inner_first ? "aten::outer" : "aten::inner", 4, inner_first ? 9 : 2);
    const auto profile = text.read();
    check(profile);
    const trace::Trace& trace = profile.devices[0].trace;
    ASSERT_EQ(trace.ops.size(), 2u);
    EXPECT_EQ(trace.ops[0].name, "aten::outer");
    EXPECT_EQ(trace.ops[trace.storages[0].op.value].name, "aten::inner");
    const auto frames = profile.stacks.frames(trace.storages[0].stack);
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(profile.stacks.frame(frames[0]).function, "aten::inner");
    EXPECT_EQ(profile.stacks.frame(frames[1]).function, "aten::outer");
  }
}

TEST(Profile, AnnotationsComeInPairsByTime) {
  const auto profile = ProfileText()
                           .memory(5, 512, 0x1000)
                           .span("user_annotation", "ProfilerStep#2", 10, 10)
                           .span("Operator", "ProfilerStep#1", 0, 10)
                           .span("user_annotation", "Optimizer.step#Adam.step", 4, 2)
                           .read();
  check(profile);
  const trace::Trace& trace = profile.devices[0].trace;
  std::string all;
  for (const auto& annotation : trace.annotations) all += (annotation.start ? "+" : "-") + annotation.name + " ";
  EXPECT_EQ(all,
            "+ProfilerStep#1 +Optimizer.step#Adam.step -Optimizer.step#Adam.step -ProfilerStep#1 +ProfilerStep#2 "
            "-ProfilerStep#2 ");
  EXPECT_TRUE(trace.ops.empty());
  // The number of the step is left out of the name, because it would make the stack of every step different.
  const auto frames = profile.stacks.frames(trace.storages[0].stack);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(profile.stacks.frame(frames[0]).function, "Optimizer.step#Adam.step");
}

TEST(Profile, AnOutOfMemoryEventSaysWhatWasAskedFor) {
  ProfileText text;
  text.memory(1, 512, 0x1000, 512, 2097152);
  text.events.push_back({{"ph", "i"},
                         {"name", "[OutOfMemory]"},
                         {"tid", 7},
                         {"ts", 2},
                         {"args",
                          {{"Device Type", 1},
                           {"Device Id", 0},
                           {"Bytes", 1048576},
                           {"Total Allocated", 512},
                           {"Total Reserved", 2097152}}}});
  const auto profile = text.read();
  check(profile);
  const auto* oom = std::get_if<trace::event::OutOfMemory>(&profile.devices[0].trace.events.back().what);
  ASSERT_TRUE(oom);
  EXPECT_EQ(oom->requested, 1_MiB);
  EXPECT_FALSE(oom->device_free_known);
  EXPECT_TRUE(profile.devices[0].addresses);
}

TEST(Profile, TheDeviceWithTheMostBytesComesFirst) {
  ProfileText text;
  text.memory(1, 512, 0x1000).memory(1, 4096, 0x1000).memory(1, 1024, 0x1000).memory(1, 1024, 0x5000);
  text.events[1]["args"]["Device Id"] = 3;
  text.events[2]["args"]["Device Type"] = 0;
  text.events[2]["args"]["Device Id"] = -1;
  const auto profile = text.read();
  check(profile);
  ASSERT_EQ(profile.devices.size(), 3u);
  EXPECT_EQ(profile.devices[0].index, 3);
  EXPECT_EQ(profile.devices[1].index, 0);
  EXPECT_EQ(profile.devices[1].type, 1);
  EXPECT_EQ(profile.devices[2].name, "CPU");
}

TEST(Profile, SaysWhatCannotBe) {
  const auto told = [](const ProfileText& text) {
    const auto profile = text.read();
    check(profile);
    std::string all;
    for (const auto& what : profile.devices[0].trace.inconsistencies) all += what + "|";
    return all;
  };
  EXPECT_EQ(told(ProfileText().memory(1, 512, 4096).memory(2, 1024, 4096)),
            "event 1: 1024 bytes are allocated at address 4096, where 512 bytes still stand|");
  EXPECT_EQ(told(ProfileText().memory(1, 512, 4096).memory(2, -512, 4096).memory(3, -512, 4096)),
            "event 2: 512 bytes are freed at address 4096, which was freed before|");
  EXPECT_EQ(told(ProfileText().memory(1, 512, 4096).memory(2, -1024, 4096)),
            "event 1: 1024 bytes are freed where 512 bytes were allocated|");
  EXPECT_EQ(told(ProfileText().memory(1, 512, 4096, 512).memory(2, 512, 8192, 4096)),
            "event 1: \"Total Allocated\" is 4096 bytes, the events before it add up to 1024|");
  EXPECT_EQ(told(ProfileText().memory(1, 512, 4096, 512).memory(2, -512, 8192, 0)),
            "0 bytes were live before the first event, yet 512 bytes from before it are freed|");
  EXPECT_EQ(told(ProfileText().memory(1, 512, 4096, 256)),
            "\"Total Allocated\" says that -256 bytes were live before the first event|");
}

TEST(Profile, ReadsAnExcerptOfARealTraceOfTorch1) {
  const auto profile = read_profile_file(data_folder() / "profiles/kineto_resnet50_old.json");
  ASSERT_EQ(profile.devices.size(), 2u);
  EXPECT_EQ(profile.devices[0].name, "Tesla V100-DGXS-32GB");
  EXPECT_EQ(profile.devices[0].total, 34084028416_B);
  EXPECT_EQ(peak(profile.devices[0].trace), 25690112_B);
  EXPECT_EQ(profile.devices[0].trace.live_before, 390144_B);
}

TEST(Profile, ReadsATraceOfTorch213) {
  const auto profile = read_profile_file(data_folder() / "profiles/adam_cpu_torch_2_13.json.gz");
  ASSERT_EQ(profile.devices.size(), 1u);
  const auto& device = profile.devices[0];
  EXPECT_EQ(profile.torch, "2.4 or later");
  EXPECT_EQ(peak(device.trace), 189336_B);
  EXPECT_TRUE(device.trace.inconsistencies.empty());
  EXPECT_FALSE(device.trace.complete);
  EXPECT_EQ(count<trace::event::Allocation>(device.trace), 183u);
  EXPECT_EQ(count<trace::event::Free>(device.trace), 167u);
  EXPECT_EQ(device.trace.annotations.size(), 12u);
}

TEST(Profile, ReadsTheWholeRealTrace) {
  ULLAGE_NEEDS_REAL_FILES();
  const auto profile = read_profile_file(real_folder() /
                                         "kineto/pytorch__kineto__tb_plugin__samples__resnet50_num_workers_0__worker0."
                                         "1623143089861.pt.trace.json.gz");
  ASSERT_EQ(profile.devices.size(), 2u);
  // Counted by an independent reader (Python's json).
  EXPECT_EQ(peak(profile.devices[0].trace), 2791636480_B);
  EXPECT_EQ(peak(profile.devices[1].trace), 57803264_B);
  EXPECT_EQ(count<trace::event::Allocation>(profile.devices[0].trace), 4110u);
  EXPECT_EQ(profile.devices[0].trace.live_before, 0_B);
  EXPECT_FALSE(profile.devices[0].addresses);
}

}  // namespace
}  // namespace ullage::read
