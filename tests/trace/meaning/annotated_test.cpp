// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/annotated.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace ullage::trace {
namespace {

Trace events_at(std::initializer_list<std::int64_t> times) {
  Trace trace;
  for (const std::int64_t one : times) trace.events.push_back({event::Mark{}, Microseconds{one}, {}});
  return trace;
}

TEST(Annotated, HoldEventsAtTheirBordersToo) {
  Trace trace = events_at({10, 20, 30, 40});
  trace.annotations = {{false, "a", 0, {30}}, {true, "a", 0, {20}}};
  const std::vector<Annotated> ranges = annotated(trace);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].name, "a");
  EXPECT_EQ(ranges[0].begin, EventId{1});
  EXPECT_EQ(ranges[0].end, EventId{3});
  EXPECT_TRUE(ranges[0].closed);
}

TEST(Annotated, MayNestAndStayOpen) {
  Trace trace = events_at({10, 20, 30, 40});
  trace.annotations = {{true, "a", 0, {5}}, {true, "a", 0, {15}}, {false, "a", 0, {25}}, {false, "b", 0, {26}}};
  const std::vector<Annotated> ranges = annotated(trace);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].begin, EventId{1});
  EXPECT_EQ(ranges[0].end, EventId{2});
  EXPECT_EQ(ranges[1].begin, EventId{0});
  EXPECT_EQ(ranges[1].end, trace.end());
  EXPECT_FALSE(ranges[1].closed);
}

TEST(Annotated, OutsideOfAllEventsAreEmpty) {
  Trace trace = events_at({10, 20});
  trace.annotations = {{true, "a", 0, {1}}, {false, "a", 0, {2}}, {true, "b", 0, {30}}, {false, "b", 0, {31}}};
  const std::vector<Annotated> ranges = annotated(trace);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].begin, ranges[0].end);
  EXPECT_EQ(ranges[1].begin, trace.end());
}

TEST(Annotated, NeedTimesInOrder) {
  Trace trace = events_at({10, 20, 15});
  trace.annotations = {{true, "a", 0, {1}}, {false, "a", 0, {30}}};
  EXPECT_TRUE(annotated(trace).empty());
  for (Event& one : trace.events) one.at.reset();
  EXPECT_TRUE(annotated(trace).empty());
}

}  // namespace
}  // namespace ullage::trace
