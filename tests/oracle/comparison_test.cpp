// SPDX-License-Identifier: Apache-2.0
#include "comparison.h"
#include "digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ullage::oracle {
namespace {

class Comparison : public testing::Test {
 protected:
  Comparison() {
    one.name = "default";
    one.operations = 3000;
    operations = operations_of(one);
    run = run_model(one, operations, behaviour_of("2.14.1"));
  }

  Case one;
  std::vector<Operation> operations;
  oracle::Run run;  // not testing::Test::Run
};

TEST_F(Comparison, OfEqualRunsIsNone) { EXPECT_FALSE(difference(one, operations, run, run)); }

TEST_F(Comparison, NamesTheFirstEventThatDiffers) {
  oracle::Run other = run;
  other.events[1234].address += 512;
  other.events[2000].bytes += 1;
  const std::string told = difference(one, operations, run, other).value_or("");
  EXPECT_NE(told.find("first difference at event 1234,"), std::string::npos) << told;
  EXPECT_NE(told.find("default seed 0"), std::string::npos) << told;
}

TEST_F(Comparison, SeesThatOneRunEndsEarly) {
  oracle::Run other = run;
  other.events.pop_back();
  for (const auto& told : {difference(one, operations, run, other), difference(one, operations, other, run)}) {
    EXPECT_NE(told.value_or("").find("(none)"), std::string::npos);
  }
}

TEST_F(Comparison, SeesTotalsThatDiffer) {
  oracle::Run other = run;
  ++other.totals.retries;
  EXPECT_NE(difference(one, operations, run, other).value_or("").find("the totals are not"), std::string::npos);
}

TEST_F(Comparison, DigestSeesEveryFieldAndTheOrder) {
  const std::uint64_t right = digest_of(run.events).hash();
  const auto changed = [&](auto change) {
    std::vector<SeenEvent> events = run.events;
    change(events);
    return digest_of(events).hash() != right;
  };
  EXPECT_TRUE(changed([](auto& events) { events[5].address ^= 1; }));
  EXPECT_TRUE(changed([](auto& events) { events[5].bytes ^= 1; }));
  EXPECT_TRUE(changed([](auto& events) { events[5].operation ^= 1; }));
  EXPECT_TRUE(changed([](auto& events) { events[5].action = SeenEvent::Action::SegmentFreed; }));
  EXPECT_TRUE(changed([](auto& events) { events[5].stream ^= 1; }));
  EXPECT_TRUE(changed([](auto& events) { std::swap(events[5], events[6]); }));
  EXPECT_TRUE(changed([](auto& events) { events.pop_back(); }));
}

TEST(Operations, AskForBordersOfTheSettings) {
  // Each border and its neighbours. 100 MiB comes from max_split.
  const auto sizes = border_sizes(Settings{.max_split = 100});
  for (const Bytes border : {512_B, 1_MiB, 10_MiB, 19_MiB, 20_MiB, 100_MiB}) {
    for (const std::int64_t off : {-1, 0, 1}) {
      const auto wanted = static_cast<std::uint64_t>(static_cast<std::int64_t>(border.count) + off);
      EXPECT_TRUE(std::ranges::find(sizes, wanted) != sizes.end()) << wanted;
    }
  }
}

}  // namespace
}  // namespace ullage::oracle
