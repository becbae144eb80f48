// SPDX-License-Identifier: Apache-2.0
// Diagnoses of Ullage's own traces.
#include "check.h"
#include "small_training.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ullage::diagnose {
namespace {

std::vector<Diagnosis> all(trace::TraceFile file, std::optional<trace::At> at = {}) {
  return sound(diagnose(understood(std::move(file)), {"run.ullage", {}, at}));
}

Diagnosis one(trace::TraceFile file, std::optional<trace::At> at = {}) {
  const std::vector<Diagnosis> diagnoses = all(std::move(file), at);
  EXPECT_EQ(diagnoses.size(), 1u);
  return diagnoses.at(0);
}

bool says(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

Bytes held(const Diagnosis& diagnosis, trace::Category category) {
  Bytes sum;
  for (const trace::Owner& owner : diagnosis.peak->owners) sum += owner.category == category ? owner.bytes : Bytes{};
  return sum;
}

TEST(Take, IsATraceWithItsPeakOpLayerPhaseAndStep) {
  const Diagnosis diagnosis = one(small_file());
  EXPECT_EQ(diagnosis.source.kind, "trace");
  EXPECT_EQ(diagnosis.source.torch, "2.13.0");
  EXPECT_EQ(diagnosis.source.take, 0u);
  EXPECT_EQ(diagnosis.source.knobs, (std::vector<Knob>{{"batch", 4}}));
  EXPECT_EQ(
      diagnosis.headline,
      "the CPU: 171.00 MiB live at the peak, in aten::convolution_backward of net.2 (backward of step 2, event 119 "
      "of 219); nothing failed");
  EXPECT_EQ(diagnosis.place, (Place{"aten::convolution_backward", "net.2", "", "", trace::Phase::Backward, 2}));
  EXPECT_EQ(diagnosis.facts.allocated, 171_MiB + 4_B);  // the 4 bytes are the loss
  EXPECT_FALSE(diagnosis.facts.reserved);
  EXPECT_FALSE(diagnosis.facts.device);
}

TEST(Take, TellsEveryByteByWhatItWasFor) {
  const Diagnosis diagnosis = one(small_file());
  ASSERT_TRUE(diagnosis.bar);
  EXPECT_EQ(diagnosis.bar->of, "live on the CPU");
  EXPECT_EQ(diagnosis.bar->total, 171_MiB + 4_B);
  EXPECT_EQ(held(diagnosis, trace::Category::Parameters), 20_MiB);
  EXPECT_EQ(held(diagnosis, trace::Category::Buffers), 2_MiB);
  EXPECT_EQ(held(diagnosis, trace::Category::OptimizerState), 20_MiB);
  EXPECT_EQ(held(diagnosis, trace::Category::Activations), 64_MiB);
  EXPECT_EQ(held(diagnosis, trace::Category::Workspace), 5_MiB);
  EXPECT_EQ(held(diagnosis, trace::Category::Unattributed), 0_MiB);
}

TEST(Take, TellsWhatIsSavedByLayer) {
  const Diagnosis diagnosis = one(small_file());
  ASSERT_TRUE(diagnosis.saved);
  EXPECT_EQ(diagnosis.saved->bytes, 64_MiB);  // without what the backward pass of the peak has freed already
  ASSERT_EQ(diagnosis.saved->by.size(), 1u);
  // The outputs of the convolution and of the batch norm after it, which names no layer.
  EXPECT_EQ(diagnosis.saved->by[0].name, "net.0");
  EXPECT_EQ(diagnosis.saved->by[0].storages, 2u);
  EXPECT_TRUE(says(cause(diagnosis, "activations")->evidence,
                   "saved for the backward pass, most by: net.0 (train.py:12) 64.00 MiB"));
}

TEST(Take, AtItsEndKeepsNothingForABackwardPass) {
  const Diagnosis diagnosis = one(small_file(), trace::At::End);
  EXPECT_EQ(diagnosis.saved->bytes, 0_B);
  EXPECT_TRUE(diagnosis.saved->by.empty());
}

TEST(Take, IsNeverAboutSegmentsOrPiecesOfAPool) {
  for (trace::TraceFile file : {small_file(), failed_file()}) {
    const Diagnosis diagnosis = one(std::move(file));
    for (const char* id : {"fragmentation", "private_pools", "cached_unused", "other_process", "outside_pool"}) {
      EXPECT_FALSE(cause(diagnosis, id)) << id;
    }
    for (const char* id : {"expandable_segments", "max_split_size_mb", "empty_cache", "eight_bit_optimizer"}) {
      EXPECT_FALSE(remedy(diagnosis, id)) << id;
    }
    EXPECT_FALSE(diagnosis.replay);
    EXPECT_EQ(diagnosis.headline.find("reserved"), std::string::npos);
  }
}

TEST(Take, ThatEndedForLackOfMemorySaysWhoAskedForHowMuch) {
  const Diagnosis diagnosis = one(failed_file());
  EXPECT_EQ(diagnosis.headline,
            "the CPU refused 32.00 MiB to aten::convolution_backward of net.2 (backward of step 2, event 115 of 117): "
            "126.00 MiB live");
  EXPECT_EQ(diagnosis.facts.requested, 32_MiB);
  ASSERT_EQ(first(diagnosis), "budget_too_small");
  // The op has the gradient of 8 MiB, a saved activation of 32 and the weight of 16.
  EXPECT_EQ(diagnosis.causes[0].evidence[0],
            "aten::convolution_backward needs 88.00 MiB at once: 56.00 MiB for its inputs and what it had made, and "
            "the 32.00 "
            "MiB asked for");
  // 88 MiB, 128 MiB outside the pool and 8 MiB of margin, rounded up to 64 MiB.
  ASSERT_TRUE(remedy(diagnosis, "least_budget"));
  EXPECT_EQ(remedy(diagnosis, "least_budget")->action, "ullage run --memory 256MiB -- python train.py --batch-size 4");
  EXPECT_EQ(diagnosis.next, remedy(diagnosis, "least_budget")->action);
}

TEST(Take, ThatFilledThePoolWithOneOpIsSureOfIt) {
  trace::TraceFile file = failed_file();
  file.takes[0].process.pool_resident_peak = 90_MiB;
  EXPECT_GE(cause(one(file), "budget_too_small")->confidence, 0.9);
  file.takes[0].process.pool_resident_peak = 1_GiB;
  EXPECT_LE(cause(one(file), "budget_too_small")->confidence, 0.5);
}

TEST(Take, RunsInABudgetOfWhatItsLargestOpNeeds) {
  const Diagnosis diagnosis = one(small_file());
  const Remedy* run = remedy(diagnosis, "run_in_budget");
  ASSERT_TRUE(run);
  // The backward of net.2 has a gradient of 8 MiB, an activation of 32 and a weight of 16. It makes 32 and 16, and uses
  // 5 of scratch.
  EXPECT_EQ(run->saves, 171_MiB + 4_B - 109_MiB);
  EXPECT_NE(run->why.find("aten::convolution_backward needs 109.00 MiB at once"), std::string::npos) << run->why;
  EXPECT_EQ(run->action, "ullage run --memory 256MiB -- ./train 4");
}

TEST(Take, RunsWithWhatItsRunSetAside) {
  trace::TraceFile file = small_file();
  // The bytes of the op, those outside the pool (at least 120 MiB: torch alone and the warm-up), and the margin.
  file.takes[0].process.outside_expected = 278_MiB;
  EXPECT_EQ(remedy(one(file), "run_in_budget")->action, "ullage run --memory 448MiB -- ./train 4");  // 109, 278, 8
  file.takes[0].process.outside_expected = file.takes[0].process.outside_peak = Bytes{};
  EXPECT_EQ(remedy(one(file), "run_in_budget")->action, "ullage run --memory 256MiB -- ./train 4");  // 109, 120, 8
}

TEST(Take, OffersCodeOfPythonToPythonAlone) {
  EXPECT_FALSE(remedy(one(small_file()), "gradient_checkpointing"));
  trace::TraceFile python = small_file();
  python.command = {"/usr/bin/python3", "train.py"};
  EXPECT_TRUE(remedy(one(python), "gradient_checkpointing"));
}

TEST(Takes, AreRunAgainWithTheirOwnValues) {
  trace::TraceFile file = file_of_three();
  file.command = {"./train", "--batch={batch}", "{size}"};
  const std::vector<Diagnosis> diagnoses = all(file);
  EXPECT_NE(remedy(diagnoses[2], "run_in_budget")->action.find("-- ./train --batch=4 '{size}'"), std::string::npos);
  EXPECT_FALSE(remedy(diagnoses[2], "predict_sizes"));
}

TEST(Takes, OfARehearsalAreNotRunWithTheBytesOfASmallerSize) {
  const trace::TraceFile file = file_of_three();  // its command is for batch=64
  for (const Diagnosis& diagnosis : all(file)) EXPECT_FALSE(remedy(diagnosis, "run_in_budget"));
  trace::TraceFile at_target = file;
  at_target.at = {{"batch", 4}};
  EXPECT_TRUE(remedy(all(at_target)[2], "run_in_budget"));
}

TEST(Take, WithoutNamesOfLayersNamesTheOpAlone) {
  SmallTraining program(4, false);
  program.steps(3);
  EXPECT_NE(one(file_of({program.take()})).headline.find("in aten::convolution_backward (backward of step 2"),
            std::string::npos);
}

TEST(Takes, AreToldEachWithItsKnobs) {
  const std::vector<Diagnosis> diagnoses = all(file_of_three());
  ASSERT_EQ(diagnoses.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(diagnoses[i].source.take, i);
    EXPECT_EQ(diagnoses[i].headline.find("batch=" + std::to_string(i + 2) + ": the CPU: "), 0u);
    EXPECT_TRUE(says(diagnoses[i].notes, "one of 3 takes in this file, recorded to predict batch=64"));
  }
  EXPECT_EQ(diagnoses[0].facts.allocated, 117_MiB + 4_B);
  EXPECT_EQ(diagnoses[1].facts.allocated, 144_MiB + 4_B);
}

TEST(Takes, MeasureWhatASmallerBatchSaves) {
  const std::vector<Diagnosis> diagnoses = all(file_of_three());
  const Remedy* smaller = remedy(diagnoses[2], "smaller_batch");
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->action, "batch=3 in place of 4");  // the next smaller value, not the smallest
  EXPECT_EQ(smaller->saves, 27_MiB);
  EXPECT_EQ(smaller->basis, Basis::Computed);
  const Remedy* none = remedy(diagnoses[0], "smaller_batch");
  EXPECT_TRUE(!none || none->action.find("halve") == 0) << "of the smallest nothing was measured";
}

TEST(Takes, OfTwoKnobsCompareOnlyWhatDiffersInOne) {
  trace::TraceFile file = file_of_three();
  file.takes[1].knobs = {{"batch", 3}, {"size", 32}};
  file.takes[2].knobs = {{"batch", 4}, {"size", 64}};
  EXPECT_NE(remedy(all(file)[2], "smaller_batch")->action.find("halve"), std::string::npos);
}

TEST(Take, HasNothingOfADevice) { EXPECT_TRUE(diagnose(understood(small_file()), {"run.ullage", 0u, {}}).empty()); }

TEST(Take, WithoutAFailureHasNothingAtOne) { EXPECT_TRUE(all(small_file(), trace::At::OutOfMemory).empty()); }

TEST(TakeNotes, SayWhatIsNotInTheFile) {
  trace::TraceFile file = small_file();
  file.phases_left_out = {"checkpoint", "sampling"};
  file.takes[0].gaps = {{EventId{30}, 4000}};
  file.takes[0].details[3].sliced = true;
  const Diagnosis diagnosis = one(file);
  EXPECT_TRUE(says(diagnosis.notes, "4000 events in between are not in the file"));
  EXPECT_TRUE(says(diagnosis.notes, "1 op is a slice of a list op"));
  EXPECT_TRUE(says(diagnosis.notes, "ended at the border of a step"));
  EXPECT_TRUE(says(diagnosis.notes, "not run while recording: checkpoint, sampling"));
  EXPECT_TRUE(says(diagnosis.notes, "the whole process held at most 1.00 GiB, 128.00 MiB outside the pool"));
}

TEST(TakeNotes, OfAWholeProgramSayNothingOfBorders) {
  SmallTraining program(4);
  program.steps(3);
  const Diagnosis diagnosis = one(file_of({program.take(trace::Take::End::Program)}));
  EXPECT_FALSE(says(diagnosis.notes, "border of a step"));
}

TEST(Take, OfAFirstStepAloneSaysThatTheSecondIsLarger) {
  SmallTraining program(4);
  program.step();
  EXPECT_NE(one(file_of({program.take()})).to_know_more.find("only a first step"), std::string::npos);
  EXPECT_EQ(one(small_file()).to_know_more, "");
}

TEST(Take, OfNoEventsIsStillToldOf) {
  trace::TraceFile file;
  file.takes.emplace_back();
  const Diagnosis diagnosis = one(file);
  EXPECT_EQ(diagnosis.peak->bytes, 0_B);
  EXPECT_TRUE(all({}).empty());
}

TEST(Take, InAPartThatTheProgramNamedSaysSo) {
  trace::TraceFile file = small_file();
  file.takes[0].borders = {{EventId{10}, trace::ReportedBorder::What::PhaseBegin, "sampling", {}},
                           {EventId{200}, trace::ReportedBorder::What::PhaseEnd, "sampling", {}}};
  EXPECT_EQ(one(file).place->part, "sampling");
  EXPECT_NE(one(file).headline.find("(sampling, event "), std::string::npos);
  EXPECT_EQ(one(file, trace::At::End).place->part, "");
}

}  // namespace
}  // namespace ullage::diagnose
