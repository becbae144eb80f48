// SPDX-License-Identifier: Apache-2.0
// Compares the model with recordings of what torch's allocator did. Needs no wheel of torch.

#include "recording.h"

#include "../real.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

namespace ullage::oracle {
namespace {

constexpr std::array kVersions{"2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"};

std::string file_of(const std::string& torch) { return data_folder() / "oracle" / ("torch-" + torch + ".json"); }

class OfTorch : public testing::TestWithParam<const char*> {};

TEST_P(OfTorch, RecordedEventsAreThoseOfTheModel) {
  const auto recording = read_recording(file_of(GetParam()));
  ASSERT_TRUE(recording.ok()) << recording.error().text();
  EXPECT_GE(recording->cases.size(), 100u);
  for (const RecordedCase& one : recording->cases) {
    const auto differs = difference(one, behaviour_of(recording->torch));
    EXPECT_FALSE(differs) << *differs;
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, OfTorch, testing::ValuesIn(kVersions), [](const auto& version) {
  std::string name = version.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST(Oracle, EveryRecordingIsReplayed) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "oracle")) {
    files += entry.path().extension() == ".json" ? 1 : 0;
  }
  EXPECT_EQ(files, kVersions.size()) << "add the version to kVersions";
}

TEST(Oracle, RecordedCasesMeetEveryKindOfEvent) {
  const auto recording = read_recording(file_of("2.14.1"));
  ASSERT_TRUE(recording.ok()) << recording.error().text();
  std::array<std::uint64_t, 8> seen{};
  for (const RecordedCase& one : recording->cases) {
    for (const SeenEvent& event : run_model(one.one, operations_of(one.one), behaviour_of("2.14.1")).events) {
      ++seen.at(static_cast<std::size_t>(event.action));
    }
  }
  for (const std::uint64_t count : seen) EXPECT_GE(count, 500u);
}

TEST(Oracle, VersionsDifferWhereTheyAreKnownTo) {
  // After 2.11 torch chose differently among free blocks of one size. The recordings must tell the versions apart.
  for (const std::string torch : kVersions) {
    const auto recording = read_recording(file_of(torch));
    ASSERT_TRUE(recording.ok()) << recording.error().text();
    const std::string wrong = torch == "2.11.0" ? "2.14.1" : "2.11.0";
    EXPECT_GE(std::ranges::count_if(
                  recording->cases,
                  [&](const RecordedCase& one) { return difference(one, behaviour_of(wrong)).has_value(); }),
              20)
        << torch;
  }
}

}  // namespace
}  // namespace ullage::oracle
