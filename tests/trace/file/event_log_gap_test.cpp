// SPDX-License-Identifier: Apache-2.0

// Long takes: the log keeps only their first and newest chunks, with a gap between them.

#include "ullage/trace/file/event_log.h"

#include "trace/random_program.h"
#include "trace/take_text.h"

#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/meaning/levels.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace ullage::trace {
namespace {

constexpr EventLog::Limits kSmall{64_KiB, 64_KiB};

Take take_with_gaps(const EventLog& log) {
  std::ostringstream out;
  log.write({}, {}, Take::End::Program, out);
  auto file = test::read_text(out.str());
  EXPECT_TRUE(file) << file.error().text();
  if (!file || file->takes.size() != 1) return {};
  EXPECT_EQ(test::broken_invariant(file->takes[0]), "");
  // Writing what was read, and reading it again, gives the same.
  const auto again = test::read_text(test::written(*file));
  EXPECT_TRUE(again) << again.error().text();
  if (again) {
    EXPECT_EQ(test::lines_of(*again), test::lines_of(*file));
  }
  return std::move(file->takes[0]);
}

EventLog::Instant in_micros(std::uint64_t micros) { return {micros * 1000}; }

// Logs some 200 KiB of events. They push out everything except the first chunks and what comes next.
void long_while(EventLog& log) {
  for (int i = 0; i < 20'000; ++i) log.freed(log.allocated(1_MiB, 0, in_micros(5)), 0, in_micros(5));
}

struct Storages {
  StorageId died_in_gap, lives_on, born_in_gap, dies_behind;
};

Take with_a_gap(EventLog& log, Storages& made) {
  log.begin_take({});
  made.died_in_gap = log.allocated(1_KiB, 0, in_micros(1));
  made.lives_on = log.allocated(2_KiB, 0, in_micros(2));
  long_while(log);
  log.freed(made.died_in_gap, 0, in_micros(6));
  made.born_in_gap = log.allocated(4_KiB, 0, in_micros(7));
  made.dies_behind = log.allocated(8_KiB, 0, in_micros(8));
  long_while(log);
  log.freed(made.dies_behind, 0, in_micros(9));
  return take_with_gaps(log);
}

TEST(EventLogGap, HasTheRightLevelsBehindIt) {
  EventLog log(kSmall);
  Storages made;
  const Take take = with_a_gap(log, made);
  ASSERT_EQ(take.gaps.size(), 1u);
  EXPECT_EQ(take.gaps[0].events + take.trace.events.size() - 1, log.events());
  const EventId gap = take.gaps[0].at;
  const Levels levels = trace::levels(take.trace);
  EXPECT_EQ(levels.live.back(), 6_KiB);
  EXPECT_EQ(levels.live[gap.value - 1].count % (1024 * 1024), (3_KiB).count);
  EXPECT_EQ(levels.live[gap.value].count % (1024 * 1024), (14_KiB).count);
  EXPECT_EQ(take.trace.storages[0].died, gap);
  EXPECT_EQ(take.trace.storages[1].died, take.trace.end());
}

TEST(EventLogGap, KeepsTheBytesWithinTheLimits) {
  EventLog log(kSmall);
  Storages made;
  with_a_gap(log, made);
  EXPECT_LT(log.held(), kSmall.first + kSmall.newest + 256_KiB);
}

TEST(EventLogGap, KeepsTheFirstEventsAndTheNewestAsTheyWere) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    EventLog whole, cut(kSmall);
    for (EventLog* log : {&whole, &cut}) {
      test::RandomProgram program(*log, seed);
      program.begin_take({});
      program.run(2000);
      program.train_steps(120);
      program.run(2000);
    }
    const Take all = take_with_gaps(whole), kept = take_with_gaps(cut);
    ASSERT_TRUE(all.gaps.empty());
    ASSERT_EQ(kept.gaps.size(), 1u);
    const Levels right = levels(all.trace), levels = trace::levels(kept.trace);
    const std::size_t gap = kept.gaps[0].at.value, lost = kept.gaps[0].events;
    ASSERT_EQ(kept.trace.events.size() - 1 + lost, all.trace.events.size());
    for (std::size_t i = 0; i < kept.trace.events.size(); ++i) {
      const std::size_t same = i < gap ? i : i + lost - 1;
      ASSERT_EQ(levels.live[i], right.live[same]) << "seed " << seed << ", event " << i;
      ASSERT_EQ(kept.trace.events[i].at, all.trace.events[same].at);
      if (i != gap && !std::holds_alternative<event::Mark>(kept.trace.events[i].what)) {
        ASSERT_EQ(kept.trace.events[i].what.index(), all.trace.events[same].what.index());
      }
    }
  }
}

TEST(EventLogGap, EndsOpsThatEndedInItAndMarksThoseThatBeganInIt) {
  EventLog log(kSmall);
  log.begin_take({});
  const StorageId storage = log.allocated(1_KiB, 0, in_micros(1));
  const UseView use{storage, TensorUse::How::Output, 6, {}};
  const OpView op{"aten::mm", "MmBackward0", "fc", "net.py:3", 0, true, false, false};
  const OpId before = log.op_begun(op, {}, in_micros(2));
  const OpId throughout = log.op_begun(op, {}, in_micros(3));
  long_while(log);
  log.op_ended(before, std::span(&use, 1), false, in_micros(100));
  const OpId within = log.op_begun(op, {}, in_micros(101));
  long_while(log);
  const StorageId in_op = log.allocated(3_B, 0, in_micros(102));
  log.op_ended(within, std::span(&use, 1), false, in_micros(103));
  log.op_ended(throughout, std::span(&use, 1), false, in_micros(203));
  (void)in_op;
  const Take take = take_with_gaps(log);
  ASSERT_EQ(take.details.size(), 2u);
  EXPECT_EQ(take.details[0].end, take.gaps.at(0).at);
  EXPECT_EQ(take.details[0].took, Seconds{0.000098});
  EXPECT_EQ(take.details[1].took, Seconds{0.0002});
  EXPECT_EQ(take.details[1].end.value, take.trace.events.size() - 1);
  EXPECT_EQ(take.trace.storages.back().op, kNoOp);  // its op began in the gap
  EXPECT_TRUE(std::holds_alternative<event::Mark>(take.trace.events[take.trace.events.size() - 2].what));
}

TEST(EventLogGap, KeepsRolesChargesAndTheStateOfPhases) {
  EventLog log(kSmall);
  Storages made;
  log.begin_take({});
  made.lives_on = log.allocated(2_KiB, 0, in_micros(2));
  log.border(ReportedBorder::What::PhaseBegin, "warm-up");
  long_while(log);
  log.border(ReportedBorder::What::PhaseEnd, "warm-up");
  for (int i = 0; i < 3; ++i) log.border(ReportedBorder::What::StepEnd);
  log.border(ReportedBorder::What::PhaseBegin, "over again");
  log.border(ReportedBorder::What::PhaseEnd, "over again");
  const std::vector<Knob> knobs = {{"batch", 64}};
  log.border(ReportedBorder::What::PhaseBegin, "sampling", knobs);
  made.born_in_gap = log.allocated(4_KiB, 0, in_micros(7));
  log.has_role(made.lives_on, Role::Parameter, "w");
  log.has_role(made.born_in_gap, Role::Gradient, {});
  for (int i = 0; i < 5000; ++i) {  // each gets a role and is freed
    const StorageId gradient = log.allocated(16_B, 0, in_micros(7));
    log.has_role(gradient, Role::Gradient, {});
    log.freed(gradient, 0, in_micros(7));
  }
  log.charged(1000);
  log.charged(-1);
  long_while(log);
  const Take take = take_with_gaps(log);
  const EventId gap = take.gaps.at(0).at;
  std::uint64_t born = 0;
  while (born < take.trace.storages.size() && take.trace.storages[born].bytes != 4_KiB) ++born;
  const std::vector<RoleSeen> roles = {{gap, StorageId{0}, Role::Parameter, "w"},
                                       {gap, StorageId{born}, Role::Gradient, ""}};
  EXPECT_EQ(take.roles, roles);
  EXPECT_EQ(take.charges, (std::vector<Charged>{{gap, 999}}));
  const std::vector<ReportedBorder> borders = {{EventId{1}, ReportedBorder::What::PhaseBegin, "warm-up", {}},
                                               {gap, ReportedBorder::What::PhaseEnd, "warm-up", {}},
                                               {gap, ReportedBorder::What::StepEnd, "", {}},
                                               {gap, ReportedBorder::What::PhaseBegin, "sampling", knobs}};
  EXPECT_EQ(take.borders, borders);
}

}  // namespace
}  // namespace ullage::trace
