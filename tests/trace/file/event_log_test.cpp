// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/event_log.h"

#include "trace/random_program.h"
#include "trace/take_text.h"

#include "ullage/trace/file/interned.h"
#include "ullage/trace/file/trace_file.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {
namespace {

using test::broken_invariant;
using test::lines_of;

TraceFile file_of(const EventLog& log, const ProcessFigures& figures = {}) {
  std::ostringstream out;
  log.write({}, figures, Take::End::Program, out);
  auto file = test::read_text(out.str());
  EXPECT_TRUE(file) << file.error().text();
  if (!file) return {};
  for (const Take& take : file->takes) EXPECT_EQ(broken_invariant(take), "");
  return std::move(*file);
}

Take only_take(const EventLog& log) {
  TraceFile file = file_of(log);
  EXPECT_EQ(file.takes.size(), 1u);
  return file.takes.empty() ? Take{} : std::move(file.takes[0]);
}

EventLog::Instant at_us(std::uint64_t micros) { return {micros * 1000}; }

OpView op_named(std::string_view name) { return {name, {}, {}, {}, 0, false, false, false}; }

TEST(EventLog, NumbersStoragesAndOpsFromTakeToTake) {
  EventLog log;
  log.begin_take({});
  EXPECT_EQ(log.allocated(8_B, 0, at_us(1)), StorageId{0});
  EXPECT_EQ(log.op_begun(op_named("a"), {}, at_us(2)), OpId{0});
  log.begin_take({});
  EXPECT_EQ(log.allocated(16_B, 0, at_us(1)), StorageId{1});
  EXPECT_EQ(log.op_begun(op_named("b"), {}, at_us(2)), OpId{1});
}

TEST(EventLog, CarriesWhatLivesIntoTheNextTake) {
  EventLog log;
  const StorageId early = log.allocated(1_KiB, 0, at_us(0));  // no take is open
  log.begin_take({});
  const StorageId parameter = log.allocated(4_KiB, 0, at_us(1));
  const StorageId gone = log.allocated(7_B, 0, at_us(2));
  log.has_role(parameter, Role::Parameter, "w");
  log.charged(300);
  log.freed(gone, 0, at_us(3));
  log.end_take({}, Take::End::StepBorder);
  const StorageId between = log.allocated(2_KiB, 0, at_us(4));
  log.begin_take({});
  log.freed(early, 0, at_us(1));
  log.freed(between, 0, at_us(2));
  const TraceFile file = file_of(log);
  ASSERT_EQ(file.takes.size(), 2u);
  EXPECT_EQ(file.takes[0].trace.live_before, 1_KiB);
  EXPECT_FALSE(file.takes[0].trace.complete);
  const Take& second = file.takes[1];
  EXPECT_EQ(second.trace.live_before, 7_KiB);
  ASSERT_EQ(second.trace.storages.size(), 3u);
  EXPECT_EQ(second.trace.storages[1].bytes, 4_KiB);
  EXPECT_EQ(second.roles, (std::vector<RoleSeen>{{EventId{0}, StorageId{1}, Role::Parameter, "w"}}));
  EXPECT_EQ(second.charges, (std::vector<Charged>{{EventId{0}, 300}}));
  EXPECT_EQ(second.trace.storages[0].died, EventId{0});
  EXPECT_EQ(second.trace.storages[1].died, second.trace.end());
  EXPECT_EQ(second.trace.storages[2].died, EventId{1});
}

TEST(EventLog, TellsTheOpThatAllocatedByItsThread) {
  EventLog log;
  log.begin_take({});
  const OpId outer = log.op_begun(op_named("outer"), {}, at_us(1));
  OpView other = op_named("elsewhere");
  other.thread = 3;
  log.op_begun(other, {}, at_us(2));
  log.allocated(1_B, 0, at_us(3));
  log.allocated(2_B, 3, at_us(4));
  log.allocated(3_B, 7, at_us(5));  // thread 7 runs no op
  log.op_ended(outer, {}, false, at_us(6));
  log.allocated(4_B, 0, at_us(7));
  const Take take = only_take(log);
  ASSERT_EQ(take.trace.storages.size(), 4u);
  EXPECT_EQ(take.trace.storages[0].op, OpId{0});
  EXPECT_EQ(take.trace.storages[1].op, OpId{1});
  EXPECT_EQ(take.trace.storages[2].op, kNoOp);
  EXPECT_EQ(take.trace.storages[3].op, kNoOp);
  EXPECT_EQ(take.details[1].end, take.trace.end());  // still running
}

TEST(EventLog, LeavesOutWhatItDoesNotKnow) {
  EventLog log;
  log.begin_take({});
  const StorageId known = log.allocated(8_B, 0, at_us(1));
  const StorageId unknown{77};
  const UseView uses[] = {{unknown, TensorUse::How::Read, 6, {}}, {known, TensorUse::How::Written, 6, {}}};
  const OpId op = log.op_begun(op_named("a"), uses, at_us(2));
  log.op_ended(op, uses, false, at_us(3));
  log.op_ended(op, uses, false, at_us(4));
  log.freed(unknown, 0, at_us(5));
  log.freed(known, 0, at_us(6));
  log.freed(known, 0, at_us(7));
  log.saved(known, SavedKind::Activation, at_us(8));
  log.released(unknown, at_us(9));
  log.has_role(unknown, Role::Gradient, {});
  const Take take = only_take(log);
  EXPECT_EQ(take.trace.events.size(), 4u);
  EXPECT_EQ(log.events(), 4u);
  EXPECT_EQ(take.details[0].uses.size(), 2u);
  EXPECT_TRUE(take.roles.empty());
}

TEST(EventLog, TellsARoleOnceAndAgainWithItsName) {
  EventLog log;
  log.begin_take({});
  const StorageId id = log.allocated(8_B, 0, at_us(1));
  for (const std::string_view name : {"", "", "w", "w", ""}) log.has_role(id, Role::Parameter, name);
  const std::vector<RoleSeen> expected = {{EventId{1}, StorageId{0}, Role::Parameter, ""},
                                          {EventId{1}, StorageId{0}, Role::Parameter, "w"}};
  EXPECT_EQ(only_take(log).roles, expected);
}

TEST(EventLog, KeepsTimesFromGoingBack) {
  EventLog log;
  log.begin_take({});
  const OpId op = log.op_begun(op_named("a"), {}, at_us(10));
  log.allocated(1_B, 0, at_us(4));
  log.op_ended(op, {}, false, at_us(3));
  const Take take = only_take(log);
  for (const Event& event : take.trace.events) EXPECT_EQ(event.at, Microseconds{10});
  EXPECT_EQ(take.details[0].took, Seconds{0});
}

TEST(EventLog, KnowsNamesByPlaceAndLength) {
  EventLog log;
  log.begin_take({});
  const std::string once = "aten::add_", again = once;
  for (const std::string_view name :
       {std::string_view(once), std::string_view(again), std::string_view(once).substr(0, 9),
        std::string_view(once).substr(6), std::string_view(once)}) {
    log.op_begun(op_named(name), {}, at_us(1));
  }
  const Take take = only_take(log);
  std::string all;
  for (const Op& op : take.trace.ops) all += op.name + " ";
  EXPECT_EQ(all, "aten::add_ aten::add_ aten::add add_ aten::add_ ");
}

TEST(EventLog, CutsNamesThatAreLongerThanAny) {
  EventLog log;
  log.begin_take({});
  log.op_begun(op_named(std::string(5000, 'x')), {}, at_us(1));
  EXPECT_EQ(only_take(log).trace.ops[0].name, std::string(240, 'x'));
}

TEST(EventLog, KeepsShapesBeyondItsTable) {
  EventLog log;
  log.begin_take({});
  const StorageId id = log.allocated(8_B, 0, at_us(1));
  constexpr std::int64_t kShapes = 70'000;
  for (std::int64_t i = 0; i < kShapes; ++i) {
    const std::int64_t sizes[] = {i, INT64_MAX - i};
    const UseView use{id, TensorUse::How::Read, 6, sizes};
    log.op_begun(op_named("a"), std::span(&use, 1), at_us(1));
  }
  const Take take = only_take(log);
  ASSERT_EQ(take.details.size(), std::size_t(kShapes));
  for (std::int64_t i = 0; i < kShapes; ++i) {
    ASSERT_EQ(take.details[std::size_t(i)].uses.at(0).sizes, (std::vector{i, INT64_MAX - i}));
  }
}

TEST(EventLog, KeepsShapesApartThatHashAlike) {
  // The hash mixes each size into the hash of the sizes before it. So for another first size there is a second one that
  // gives the same hash.
  constexpr std::uint8_t kFloat = 6;
  const auto hash = [](std::vector<std::int64_t> sizes) { return Shapes::hash(kFloat, sizes); };
  std::vector<std::int64_t> one = {3, 5}, other = {3, -1};
  while (other[1] < 0) {
    ++other[0];
    other[1] = std::int64_t(5 ^ hash({3}) ^ hash({other[0]}));
  }
  ASSERT_EQ(hash(one), hash(other));
  EventLog log;
  log.begin_take({});
  const StorageId id = log.allocated(8_B, 0, at_us(1));
  for (const auto& sizes : {one, other, one, other}) {
    const UseView use{id, TensorUse::How::Read, kFloat, sizes};
    log.op_begun(op_named("a"), std::span(&use, 1), at_us(1));
  }
  const Take take = only_take(log);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(take.details.at(i).uses.at(0).sizes, i % 2 == 0 ? one : other);
}

TEST(EventLog, WritesAnOpenTakeAndGoesOn) {
  EventLog log;
  log.begin_take({});
  log.allocated(8_B, 0, at_us(1));
  const ProcessFigures figures{3_GiB, 1_GiB, 2_GiB, 2_GiB, 4, 1100_MiB};
  const TraceFile first = file_of(log, figures);
  EXPECT_EQ(first.takes.at(0).process, figures);
  log.allocated(9_B, 0, at_us(2));
  EXPECT_EQ(file_of(log).takes.at(0).trace.storages.size(), first.takes.at(0).trace.storages.size() + 1);
}

TEST(EventLog, HoldsListOpsOfAnyLength) {
  EventLog log;
  log.begin_take({});
  const StorageId id = log.allocated(8_B, 0, at_us(1));
  const std::int64_t sizes[] = {3, 4};
  const std::vector<UseView> uses(30'000, {id, TensorUse::How::Written, 6, sizes});
  log.op_ended(log.op_begun(op_named("aten::_foreach_add_"), uses, at_us(2)), uses, false, at_us(3));
  EXPECT_EQ(only_take(log).details.at(0).uses.size(), 60'000u);
}

// A step as large as one of DCGAN at 256 x 256 pixels: 1,000 storages, 1,500 ops with 2 inputs, 100 saves.
TEST(EventLog, TakesFewBytesForAStep) {
  EventLog log;
  std::uint64_t micros = 0;
  const auto step = [&] {
    std::vector<StorageId> live;
    for (std::int64_t i = 0; i < 1500; ++i) {
      const std::int64_t sizes[] = {2, 64 + i % 40, 128, 128};
      UseView uses[] = {{StorageId{0}, TensorUse::How::Read, 6, sizes},
                        {StorageId{0}, TensorUse::How::Written, 6, sizes}};
      if (!live.empty()) uses[0].storage = live[live.size() / 2];
      const OpId op = log.op_begun(op_named("aten::convolution_backward"), uses, at_us(micros += 300));
      if (i % 3 != 0) live.push_back(log.allocated(Bytes{std::uint64_t(1) << (10 + i % 18)}, 0, at_us(micros += 40)));
      if (i % 15 == 0) log.saved(uses[0].storage, SavedKind::Activation, at_us(++micros));
      log.op_ended(op, std::span(uses, 1), false, at_us(micros += 2000));
    }
    for (const StorageId id : live) log.freed(id, 0, at_us(++micros));
  };
  const auto size = [&] {
    std::ostringstream out;
    log.write({}, {}, Take::End::Program, out);
    return out.str().size();
  };
  log.begin_take({});
  log.allocated(1_MiB, 0, at_us(0));
  step();
  const std::size_t one = size();
  for (int i = 0; i < 9; ++i) step();
  EXPECT_LT((size() - one) / 9, 60'000u);
  EXPECT_LT(log.held().count / log.events(), 16u);
}

}  // namespace
}  // namespace ullage::trace
