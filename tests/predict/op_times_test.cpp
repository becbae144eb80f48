// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/op_times.h"

#include "program.h"

#include <gtest/gtest.h>

namespace ullage::predict {
namespace {

// A take of three ops: one over `batch` x 10 elements and weights, one over a constant number of elements, and one
// without known inputs. Events are 10 us apart, so each op takes 10 us.
trace::Take three_ops(std::int64_t batch) {
  Program program({{"batch", batch}});
  const StorageId input = program.from_before(4000);
  const auto op = [&](const char* name, const std::vector<trace::TensorUse>& inputs) {
    program.end(program.begin(name, inputs));
  };
  op("follows", {reads(input, {batch, 10}), reads(input, {1000})});
  op("constant", {reads(input, {7, 7})});
  op("unknown", {});
  trace::Take take = program.take();
  for (trace::Event& event : take.trace.events) event.at->count *= 10;
  for (trace::OpDetail& detail : take.details) detail.took = Seconds{10e-6};
  return take;
}

std::int64_t time_of(const trace::Take& take, std::size_t op) {
  return take.trace.events[take.details[op].end.value].at->count -
         take.trace.events[take.details[op].begin.value].at->count;
}

TEST(OpTimes, GrowAsWhatTheOpsLookAt) {
  const trace::Take small = three_ops(2), large = three_ops(4);
  trace::Take target = three_ops(40);
  estimate_times(large, small, target);
  EXPECT_DOUBLE_EQ(target.details[0].took.count, 100e-6);
  EXPECT_DOUBLE_EQ(target.details[1].took.count, 10e-6);
  EXPECT_DOUBLE_EQ(target.details[2].took.count, 10e-6);
  EXPECT_EQ(time_of(target, 0), 100);
  EXPECT_EQ(time_of(target, 1), 10);
  // The time between ops stays the same.
  EXPECT_EQ(target.trace.events.back().at->count, small.trace.events.back().at->count + 90);
}

TEST(OpTimes, AreThoseOfTheLargestTake) {
  trace::Take small = three_ops(2), large = three_ops(4), target = three_ops(4);
  for (trace::OpDetail& detail : large.details) detail.took = Seconds{50e-6};
  estimate_times(large, small, target);
  EXPECT_DOUBLE_EQ(target.details[0].took.count, 50e-6);
  EXPECT_EQ(time_of(target, 0), 50);
}

}  // namespace
}  // namespace ullage::predict
