// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/trace_file.h"

#include "folders.h"
#include "trace/random_program.h"
#include "trace/take_text.h"

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/meaning/levels.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace ullage::trace {
namespace {

using test::broken_invariant;
using test::lines_of;
using test::read_text;
using test::written;

TraceFile front() {
  TraceFile file;
  file.torch = "2.13.0";
  file.command = {"python", "train.py", "--name=\"a b\"", "\xc3\xa4"};
  file.at = {{"batch", 128}, {"size", -1}};
  file.phases_left_out = {"checkpoint"};
  file.choices = {{"image-size", 256, {16, 256, 512}}, {"precision", 32, {16, 32}, {"bf16", "fp32"}}};
  file.changes = {{"--micro-batch 4", "different"}};
  file.sides = {"width", "height"};
  file.onednn = false;
  return file;
}

constexpr ProcessFigures kFigures{5_GiB, 134_MiB, 4_GiB, 4_GiB, 2, 141_MiB};

// A file that the log writes, and the takes that a reader must get from it.
struct Recorded {
  std::string content;
  TraceFile expected = front();
};

Recorded recorded(unsigned seed, std::uint64_t actions) {
  Recorded made;
  EventLog log;
  test::RandomProgram program(log, seed);
  program.begin_take({{"batch", 2}});
  program.run(actions);
  made.expected.takes.push_back(program.finish(kFigures, Take::End::StepBorder));
  program.begin_take({{"batch", 3}, {"size", 64}});
  program.run(actions / 2);
  made.expected.takes.push_back(program.finish({}, Take::End::OutOfMemory));
  std::ostringstream out;
  log.write(front(), {}, Take::End::Program, out);
  made.content = out.str();
  return made;
}

TEST(TraceFile, GivesWhatWasRecordedInEveryField) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Recorded made = recorded(seed, 200 + 400 * seed);
    const auto file = read_text(made.content);
    ASSERT_TRUE(file) << file.error().text();
    ASSERT_EQ(lines_of(*file), lines_of(made.expected)) << "seed " << seed;
    for (const Take& take : file->takes) ASSERT_EQ(broken_invariant(take), "");
  }
}

TEST(TraceFile, WrittenFromTakesGivesTheSameAgain) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Recorded made = recorded(seed, 300 * seed);
    const auto file = read_text(written(made.expected));
    ASSERT_TRUE(file) << file.error().text();
    ASSERT_EQ(lines_of(*file), lines_of(made.expected)) << "seed " << seed;
  }
}

TEST(TraceFile, HoldsNoTakesAndTakesWithoutEvents) {
  TraceFile file = front();
  EXPECT_EQ(lines_of(*read_text(written(file))), lines_of(file));
  file.takes.resize(2);
  file.takes[0].trace.complete = file.takes[1].trace.complete = true;
  EXPECT_EQ(lines_of(*read_text(written(file))), lines_of(file));
}

TEST(TraceFile, RefusesToWriteWhatItCouldNotRead) {
  TraceFile file;
  file.takes.resize(1);
  Trace& trace = file.takes[0].trace;
  const EventId first{0}, end{1};
  trace.storages = {{1_B, {}, {}, {}, kNoOp, first, end, end, false}, {2_B, {}, {}, {}, kNoOp, first, end, end, false}};
  trace.events = {{event::Allocation{StorageId{1}}, Microseconds{0}, {}}};
  EXPECT_THROW(written(file), ContractError);  // storages must be numbered in the order of their births
  trace.events = {{event::FreeRequest{StorageId{0}}, Microseconds{0}, {}}};
  EXPECT_THROW(written(file), ContractError);
  trace.events.clear();
  file.takes[0].roles = {{EventId{3}, StorageId{0}, Role::Parameter, ""}};
  EXPECT_THROW(written(file), ContractError);  // behind the end
}

// The file was written when version 1 was new. It must be read the same as long as version 1 is supported.
TEST(TraceFile, ReadsAnOldFileAsItWasWritten) {
  std::ifstream in(tests_folder() / "data/traces/gap.ullage", std::ios::binary);
  const auto file = read_text({std::istreambuf_iterator<char>(in), {}});
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ(file->takes.size(), 1u);
  const Take& take = file->takes[0];
  EXPECT_EQ(broken_invariant(take), "");
  EXPECT_TRUE(file->onednn);  // the default for older files, which do not state it
  EXPECT_TRUE(file->choices.empty());
  EXPECT_EQ(take.knobs, (std::vector<Knob>{{"batch", 4}, {"size", 64}}));
  EXPECT_EQ(take.gaps, (std::vector<Gap>{{EventId{4}, 123'456}}));
  EXPECT_EQ(take.roles, (std::vector<RoleSeen>{{EventId{0}, StorageId{0}, Role::Parameter, "netG.main.0.weight"},
                                               {EventId{4}, StorageId{4}, Role::Gradient, ""}}));
  EXPECT_EQ(take.charges, (std::vector<Charged>{{EventId{3}, 777}, {EventId{14}, -777}}));
  const std::vector<ReportedBorder> borders = {
      {EventId{4}, ReportedBorder::What::StepEnd, "", {}},
      {EventId{12}, ReportedBorder::What::PhaseBegin, "sampling", {{"batch", 64}}},
      {EventId{14}, ReportedBorder::What::PhaseEnd, "sampling", {}}};
  EXPECT_EQ(take.borders, borders);
  EXPECT_EQ(take.process, (ProcessFigures{2_GiB, 134_MiB, Bytes{20'096}, Bytes{65'536}, 8, Bytes{}}));
  EXPECT_EQ(take.end, Take::End::OutOfMemory);
  ASSERT_EQ(take.details.size(), 2u);
  const OpDetail backward{
      1,
      true,
      false,
      false,
      false,
      {},
      "ConvolutionBackward0",
      "netG.main.0",
      "",
      EventId{5},
      EventId{11},
      Seconds{0.003},
      {{StorageId{5}, TensorUse::How::Written, 6, {}}, {StorageId{4}, TensorUse::How::Output, 15, {1, 0}}}};
  EXPECT_EQ(take.details[1], backward);
  std::vector<std::uint64_t> live;
  for (const Bytes level : levels(take.trace).live) live.push_back(level.count);
  const std::vector<std::uint64_t> expected = {4196,  5196,  7196,  7196,  17196, 17196, 24196,
                                               24196, 17196, 17096, 17096, 17096, 12096, 12096};
  EXPECT_EQ(live, expected);
}

}  // namespace
}  // namespace ullage::trace
