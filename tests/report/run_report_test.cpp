// SPDX-License-Identifier: Apache-2.0
#include "folders.h"
#include "golden_file.h"
#include "sample_run.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <ostream>
#include <sstream>

namespace ullage::report {
namespace {

std::string json_text(const RunReport& report) {
  std::ostringstream out;
  write_json(report, out);
  return out.str();
}

void expect_json(const char* file, const RunReport& report) {
  expect_golden(tests_folder() / "report/golden" / file, json_text(report));
}

TEST(RunReport, WritesTheJsonOfTheContract) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.state_sha256.set(std::string(64, 'a'));
  expect_json("done.json", run.report());
}

TEST(RunReport, WritesWhatWasMovedAndWhatThatCost) {
  SampleRun run;
  run.moves(run.attach()).spill_message.set("the disk\nis full");
  expect_json("moved.json", run.report());
}

TEST(RunReport, WritesThePlanAndWhatWasRecomputed) {
  SampleRun run;
  run.plans(run.moves(run.attach()));
  expect_json("planned.json", run.report());
}

TEST(RunReport, TakesThePlanFromTheProcessWithTheMostStepsAndAddsUpWhatWasRecomputed) {
  SampleRun run;
  run.plans(run.attach(0)).steps.store(3);
  store::LedgerSlot& busy = run.plans(run.attach(1));
  busy.plan_peak.store((7_MiB).count), busy.plan_bound_us.store(0), busy.plan_peak_seen.store(0);
  run.attach(2).steps.store(99);  // has no plan
  const RunReport report = run.report();
  ASSERT_TRUE(report.plan);
  EXPECT_EQ(report.plan->peak, 7_MiB);
  EXPECT_FALSE(report.plan->bound);
  EXPECT_EQ(report.recomputed_ops, 2u * 41 * 8);
  EXPECT_DOUBLE_EQ(report.recompute.count, 1.92);
  EXPECT_EQ(report.tape, 2_MiB);
  EXPECT_FALSE(SampleRun().report().plan);
}

TEST(RunReport, HasTheClassOfWhatWasAllowedAndAddsUpTheOpsInBf16) {
  SampleRun run;
  run.end.allowed = {"bf16"};
  run.attach(0).half_ops.store(40);
  run.attach(1).half_ops.store(2);
  EXPECT_EQ(run.report().effect, advise::Effect::SameBits);  // the ops are the program's own
  run.end.facts.cast = advise::Facts::Network{{"train.py", 7}, "Net", "cpu"};
  const RunReport report = run.report();
  EXPECT_EQ(report.effect, advise::Effect::Rounding);
  EXPECT_EQ(report.half_ops, 42u);
  const auto json = nlohmann::json::parse(json_text(report));
  EXPECT_EQ(json["class"], "rounding");
  EXPECT_EQ(json["allowed"], nlohmann::json{"bf16"});
  EXPECT_EQ(json["half_ops"], 42);
}

TEST(RunReport, HasTheClassOfTheWorstOptionOfTheProgram) {
  SampleRun run;
  run.attach(0).changes.set("rounding --precision bf16\n");
  EXPECT_EQ(run.report().effect, advise::Effect::Rounding);
  run.attach(1).changes.set("rounding --precision bf16\ndifferent --micro-batch 4\n");
  const RunReport report = run.report();
  EXPECT_EQ(report.effect, advise::Effect::Different);
  const auto json = nlohmann::json::parse(json_text(report));
  EXPECT_EQ(json["class"], "different");
  EXPECT_EQ(json["changes"], nlohmann::json::parse(R"([{"what": "--precision bf16", "class": "rounding"},
                                                       {"what": "--micro-batch 4", "class": "different"}])"));
  EXPECT_EQ(allowance_line(report), "results differ by --precision bf16 (rounding), --micro-batch 4 (different)");
  EXPECT_EQ(allowance_line(SampleRun().report()), "");
}

TEST(RunReport, SaysWhatWasChosenOfAProgramsOwnWays) {
  SampleRun run;
  run.end.allowed = {"rounding"};
  ComparedWay as_it_is, half;
  as_it_is.chosen = true, half.results = plan::Lever::Results::Rounding, half.changes = {"--precision bf16"};
  run.end.ways = {as_it_is, half};
  store::LedgerSlot& slot = run.attach();
  EXPECT_EQ(allowance_line(run.report()), "not a bit differs: the program ran as it is");
  const auto json = nlohmann::json::parse(json_text(run.report()));
  ASSERT_EQ(json["ways"].size(), 2u);
  EXPECT_FALSE(json["ways"][0].contains("file"));
  EXPECT_EQ(json["ways"][1]["changes"], nlohmann::json{"--precision bf16"});
  EXPECT_TRUE(json["half_ops"].is_null());
  run.end.ways[0].chosen = false, run.end.ways[1].chosen = true;
  slot.changes.set("rounding --precision bf16\n");
  EXPECT_EQ(allowance_line(run.report()), "results differ by --precision bf16 (rounding)");
}

TEST(RunReport, SaysWhichStepsRanInBf16IfNeeded) {
  SampleRun run;
  run.end.allowed = {"bf16", "if-needed"};
  store::LedgerSlot& slot = run.attach();
  EXPECT_EQ(allowance_line(run.report()), "not a bit differs: no step ran in bf16, because the program fits as it is");
  EXPECT_EQ(nlohmann::json::parse(json_text(run.report()))["cast"]["why"], "not_needed");
  run.plans(slot);
  EXPECT_EQ(allowance_line(run.report()),
            "not a bit differs: no step ran in bf16, because the exact plan costs +6 % time (bound +4 %)");
  run.end.facts.cast = advise::Facts::Network{{"train.py", 7}, "Net", "cpu"};
  slot.cast_why.store(1), slot.cast_from.store(5);
  EXPECT_EQ(allowance_line(run.report()), "results differ in rounding from step 5 on, in bf16: no exact plan fits");
  slot.cast_why.store(2), slot.exact_step_us.store(2'000'000), slot.cast_step_us.store(1'500'000);
  EXPECT_EQ(
      allowance_line(run.report()),
      "results differ in rounding from step 5 on, in bf16: a step takes 1.5 s in bf16, 2.0 s under the exact plan");
  slot.cast_until.store(11);
  EXPECT_EQ(allowance_line(run.report()),
            "results differ in rounding: steps 5 to 10 were tried in bf16; a step takes 1.5 s in bf16, 2.0 s under the "
            "exact plan");
  const auto json = nlohmann::json::parse(json_text(run.report()));
  EXPECT_EQ(json["class"], "rounding");
  EXPECT_EQ(json["cast"], nlohmann::json::parse(R"({"why": "dear_plan", "from_step": 5, "until_step": 11,
                                                    "exact_step_seconds": 2.0, "cast_step_seconds": 1.5})"));
}

TEST(RunReport, WritesNullForWhatAnUnlinkedProgramCannotTell) {
  SampleRun run;
  run.page->budget.store(0);
  run.end.command = {"python3", "-c", "pass"};
  expect_json("unattached.json", run.report());
}

TEST(RunReport, WritesARefusalWithItsMessage) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.refused.store(1);
  slot.last_request.store((512_MiB).count);
  slot.last_op.set("aten::convolution_backward");
  slot.message.set("no room\nfor 512.00 MiB");
  run.exits(4);
  expect_json("refused.json", run.report());
}

TEST(RunReport, WritesWhatWasHeldOfACard) {
  SampleRun run;
  run.moves(run.attach_on_card(1));
  run.page->tree_peak.store((6_GiB).count);
  expect_json("card.json", run.report());
}

TEST(RunReport, WritesWhoCountedACardAndWhatItsDriverWasAsked) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach_on_card(0);
  run.moves(slot), run.plans(slot);
  EXPECT_TRUE(nlohmann::json::parse(json_text(run.report()))["counted_by"].is_null());
  slot.counted_by.store(1), slot.count_note.set("no libnvidia-ml.so.1");
  slot.locked.store((3_GiB).count), slot.lock_failure.set("out of\nmemory (2)");
  slot.driver_calls[1].store(900), slot.plan_calls[1].store(7), slot.plan_calls[3].store(2);
  slot.plan_calls_away.store((12_MiB).count), slot.plan_calls_back.store((2_MiB).count);
  const auto json = nlohmann::json::parse(json_text(run.report()));
  EXPECT_EQ(json["counted_by"], "driver");
  EXPECT_EQ(json["count_note"], "no libnvidia-ml.so.1");
  EXPECT_EQ(json["locked_bytes"], (3_GiB).count);
  EXPECT_EQ(json["lock_failure"], "out of memory (2)");
  EXPECT_EQ(json["driver_calls"]["map"], 900);
  EXPECT_EQ(json["plan"]["last_step"], nlohmann::json::parse(R"({"driver_calls": {"create": 0, "map": 7, "allow": 0,
                                        "unmap": 2, "release": 0}, "away_bytes": 12582912, "back_bytes": 2097152})"));
  slot.counted_by.store(2);
  EXPECT_EQ(nlohmann::json::parse(json_text(run.report()))["counted_by"], "driver and nvml");
  run.end.dry = DryCardCount{};
  EXPECT_EQ(nlohmann::json::parse(json_text(run.report()))["counted_by"], "dry card");
}

TEST(RunReport, ATreesPeakIsAtLeastThatOfItsLargestProcess) {
  SampleRun run;
  run.attach();
  run.page->tree_peak.store((600_MiB).count);  // counted while there were several processes
  EXPECT_EQ(run.report().tree_peak, 1900_MiB);
  run.page->tree_peak.store((2000_MiB).count);
  EXPECT_EQ(run.report().tree_peak, 2000_MiB);
  run.page->tree_peak.store((600_MiB).count);
  run.end.peak = 700_MiB;
  EXPECT_EQ(run.report().tree_peak, 1900_MiB) << "the runtime saw more than the operating system said at the end";
}

TEST(RunReport, KnowsNothingOfACardWhereTheRuntimeWasInNoProcess) {
  SampleRun run;
  run.page->card.store(1);
  const auto json = nlohmann::json::parse(json_text(run.report()));
  EXPECT_EQ(json["device"], "cuda:0");
  EXPECT_TRUE(json["process_peak_bytes"].is_null());
  EXPECT_EQ(json["over_budget_bytes"], 0);
}

TEST(RunReport, WritesCommandsThatAreNoUtf8) {
  SampleRun run;
  run.end.command = {"cat", "\xff\xfe.txt"};
  EXPECT_TRUE(nlohmann::json::accept(json_text(run.report())));
}

TEST(RunReport, HasEveryFieldOfTheContract) {
  const auto json = nlohmann::json::parse(json_text(SampleRun().report()));
  for (const char* field : {"format",
                            "version",
                            "command",
                            "device",
                            "exit_code",
                            "threads",
                            "outcome",
                            "budget_bytes",
                            "process_peak_bytes",
                            "tree_peak_bytes",
                            "outside_pool_bytes",
                            "pool_peak_bytes",
                            "pool_resident_peak_bytes",
                            "plain_pool_peak_bytes",
                            "steps",
                            "seconds",
                            "step_seconds_median",
                            "spilled_bytes",
                            "restored_bytes",
                            "spill_seconds",
                            "spill_background_seconds",
                            "programs_held_seconds",
                            "spill_peak_bytes",
                            "rewrites_avoided_bytes",
                            "unmovable_bytes",
                            "files_let_go_bytes",
                            "unannounced_accesses",
                            "spill_message",
                            "least_budget_bytes",
                            "recomputed_ops",
                            "recompute_seconds",
                            "plan",
                            "state_sha256",
                            "message",
                            "over_budget_bytes"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
}

struct OutcomeCase {
  const char* what;
  int exit_code;
  int signal;
  OomKills kills;
  bool attached;
  bool infeasible;
  Outcome expected;
};

std::ostream& operator<<(std::ostream& out, const OutcomeCase& c) { return out << c.what; }  // names the ctest

class OutcomeOf : public testing::TestWithParam<OutcomeCase> {};

TEST_P(OutcomeOf, Run) {
  const OutcomeCase& c = GetParam();
  SampleRun run;
  if (c.attached) run.attach().infeasible.store(c.infeasible ? 1 : 0);
  if (c.signal != 0) {
    run.dies_of(c.signal);
  } else {
    run.exits(c.exit_code);
  }
  run.end.oom_kills = c.kills;
  EXPECT_EQ(run.report().outcome, c.expected) << c.what;
}

INSTANTIATE_TEST_SUITE_P(
    All, OutcomeOf,
    testing::Values(
        OutcomeCase{"done", 0, 0, OomKills::Unchanged, true, false, Outcome::Done},
        OutcomeCase{"done although a child of it was killed", 0, 0, OomKills::Rose, true, false, Outcome::Done},
        OutcomeCase{"the runtime would not start", 1, 0, OomKills::Unchanged, true, true, Outcome::Infeasible},
        OutcomeCase{"exit 4 of a linked program", 4, 0, OomKills::Unchanged, true, false, Outcome::Infeasible},
        OutcomeCase{"exit 4 of a stranger", 4, 0, OomKills::Unchanged, false, false, Outcome::Failed},
        OutcomeCase{"exit 130", 130, 0, OomKills::Unchanged, true, false, Outcome::Interrupted},
        OutcomeCase{"SIGINT", 0, SIGINT, OomKills::Unchanged, true, false, Outcome::Interrupted},
        OutcomeCase{"the kernel", 0, SIGKILL, OomKills::Rose, true, false, Outcome::KilledByKernel},
        OutcomeCase{"the kernel behind a shell", 137, 0, OomKills::Rose, false, false, Outcome::KilledByKernel},
        OutcomeCase{"kill -9", 0, SIGKILL, OomKills::Unchanged, true, false, Outcome::Failed},
        OutcomeCase{"kill -9 where nothing counts", 0, SIGKILL, OomKills::Unreadable, true, false, Outcome::Failed},
        OutcomeCase{"SIGTERM", 0, SIGTERM, OomKills::Unchanged, true, false, Outcome::Failed},
        OutcomeCase{"a worker was killed", 1, 0, OomKills::Rose, true, false, Outcome::Failed},
        OutcomeCase{"exit 7", 7, 0, OomKills::Unchanged, true, false, Outcome::Failed}));

TEST(RunReport, TakesTheProcessFromTheLargestSlotAndTheStepsFromTheBusiest) {
  SampleRun run;
  run.attach(0).steps.store(3);
  store::LedgerSlot& large = run.attach(5);
  large.rss_peak.store((1950_MiB).count);
  large.outside_at_peak.store((150_MiB).count);
  large.pool_live_peak.store((1700_MiB).count);
  large.pool_resident_peak.store((1800_MiB).count);
  large.steps.store(0);
  for (auto& word : large.step_us) word.store(9'000'000);
  const RunReport report = run.report();
  EXPECT_EQ(report.process_peak, 1950_MiB);
  EXPECT_EQ(report.outside_pool, 150_MiB);
  EXPECT_EQ(report.pool_peak, 1700_MiB);
  EXPECT_EQ(report.steps, 3u);
  EXPECT_DOUBLE_EQ(report.step_median->count, 2.0);
}

TEST(RunReport, PeakIsNeverBelowEitherWitness) {
  SampleRun run;
  run.attach();
  run.end.peak = 1800_MiB;
  EXPECT_EQ(run.report().process_peak, 1900_MiB);
  run.end.peak = 1990_MiB;
  EXPECT_EQ(run.report().process_peak, 1990_MiB);
}

TEST(RunReport, WhatNoLookSawIsOutsideThePool) {
  SampleRun run;
  run.attach();
  EXPECT_EQ(run.report().outside_pool, 140_MiB);
  run.end.peak = 1960_MiB;  // 200 MiB above the pool's peak
  EXPECT_EQ(run.report().outside_pool, 200_MiB);
}

TEST(RunReport, ABreachIsCountedFromTheSystemsOwnPeak) {
  SampleRun run;
  run.attach();
  EXPECT_EQ(run.report().over_budget, 0_B);
  run.end.peak = 2_GiB + 4_KiB;
  EXPECT_EQ(run.report().over_budget, 4_KiB);
  run.page->slots[0].over_budget.store((1_MiB).count);  // the runtime saw more
  EXPECT_EQ(run.report().over_budget, 1_MiB);
  run.page->budget.store(0);
  run.page->slots[0].over_budget.store(0);
  EXPECT_EQ(run.report().over_budget, 0_B);
}

TEST(RunReport, ResidentBytesAreNotJudgedAgainstTheBudgetOfACard) {
  SampleRun run;
  run.attach_on_card(0);
  run.attach(1).rss_peak.store((1950_MiB).count);
  run.page->tree_peak.store((6_GiB).count);
  EXPECT_EQ(run.report().process_peak, 1950_MiB);  // not the 5 GiB that wait4 reported
  EXPECT_FALSE(run.report().tree_peak);
  EXPECT_EQ(run.report().outside_pool, 190_MiB);
  EXPECT_EQ(run.report().over_budget, 0_B);
  run.page->slots[0].over_budget.store((3_MiB).count);
  EXPECT_EQ(run.report().over_budget, 3_MiB);
  run.page->slots[1].rss_peak.store((2_GiB + 4_MiB).count);
  EXPECT_EQ(run.report().over_budget, 4_MiB);
}

TEST(RunReport, TheCountOfADryCardIsThePeak) {
  SampleRun run;
  run.attach_on_card(0);
  run.attach(1).rss_peak.store((1950_MiB).count);
  run.end.dry = DryCardCount{};
  run.end.dry->peak = 2_GiB + 5_MiB;  // between two looks of the runtime
  EXPECT_EQ(run.report().process_peak, 2_GiB + 5_MiB);
  EXPECT_EQ(run.report().outside_pool, 190_MiB + 103_MiB);  // what no look saw is outside the pool
  EXPECT_EQ(run.report().over_budget, 5_MiB);
}

TEST(RunReport, TheBudgetOfACardIsTheOneThatTheRuntimeWorkedOut) {
  SampleRun run;
  run.page->budget.store(0);
  run.attach_on_card(0);
  EXPECT_FALSE(run.report().budget);
  run.page->budget.store((70_GiB).count);
  EXPECT_EQ(run.report().budget, 70_GiB);
}

TEST(RunReport, MedianOfStepsIsOverTheRingAndOfAnEvenCountBetweenTheTwo) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  for (auto& word : slot.step_us) word.store(0);
  slot.step_us[0].store(1'000'000);
  slot.step_us[1].store(9'000'000);
  slot.step_us[2].store(2'000'000);
  EXPECT_DOUBLE_EQ(run.report().step_median->count, 2.0);
  slot.step_us[3].store(4'000'000);
  EXPECT_DOUBLE_EQ(run.report().step_median->count, 3.0);
  slot.steps.store(0);
  EXPECT_FALSE(run.report().step_median);
}

TEST(RunReport, PlainPeakIsUnknownOnceARequestWasRefused) {
  SampleRun run;
  run.attach();
  EXPECT_EQ(run.report().plain_pool_peak, 1750_MiB);
  run.page->slots[0].refused.store(1);
  EXPECT_FALSE(run.report().plain_pool_peak);
}

TEST(RunReport, ThePlainPeakIsWhatWasLiveAlsoFarAboveTheBudget) {
  SampleRun run;
  run.moves(run.attach());
  EXPECT_EQ(run.report().plain_pool_peak, 2600_MiB);
  EXPECT_EQ(run.report().plain_total, 2740_MiB);
  run.page->slots[0].pool_live_peak.store(UINT64_MAX);  // a damaged slot: no sum, and no overflow
  EXPECT_FALSE(run.report().plain_total);
}

TEST(RunReport, AddsUpTheMovingOfAllProcesses) {
  SampleRun run;
  run.moves(run.attach(0)).least_budget.store((900_MiB).count);
  run.moves(run.attach(1));
  const RunReport report = run.report();
  EXPECT_EQ(report.moving.out, 6_GiB);
  EXPECT_EQ(report.moving.back, 5_GiB);
  EXPECT_EQ(report.moving.peak, 1800_MiB);
  EXPECT_EQ(report.moving.rewrites_avoided, 1400_MiB);
  EXPECT_EQ(report.moving.unmovable, 24_MiB);
  EXPECT_EQ(report.moving.files_let_go, 10_MiB);
  EXPECT_EQ(report.moving.unannounced_accesses, 8u);
  EXPECT_DOUBLE_EQ(report.moving.waited.count, 2.0);
  EXPECT_DOUBLE_EQ(report.moving.beside.count, 6.0);
  EXPECT_EQ(report.least_budget, 900_MiB);  // that of the process that needs most
  run.page->slots[0].spilled.store(UINT64_MAX);
  EXPECT_EQ(run.report().moving.out.count, UINT64_MAX);
}

TEST(RunReport, LeastBudgetHoldsARefusedRequestOnlyIfTheProgramFailedWithoutIt) {
  SampleRun run;
  store::LedgerSlot& slot = run.moves(run.attach());
  slot.least_budget.store((900_MiB).count);
  slot.refused_least.store((160_GiB).count);
  slot.refused.store(1);
  EXPECT_EQ(run.report().least_budget, 900_MiB);
  run.exits(1);
  EXPECT_EQ(run.report().least_budget, 160_GiB);
  EXPECT_EQ(run.report().budget_to_try, 160_GiB);
}

TEST(RunReport, LeastBudgetIsAtMostTheBudgetThatWasEnough) {
  SampleRun run;
  store::LedgerSlot& slot = run.moves(run.attach());
  slot.least_budget.store((2345_MiB).count);
  EXPECT_EQ(run.report().least_budget, 2_GiB);
  slot.refused.store(1);
  EXPECT_EQ(run.report().least_budget, 2345_MiB);
  slot.refused.store(0);
  slot.over_budget.store((1_MiB).count);
  EXPECT_EQ(run.report().least_budget, 2345_MiB);
}

TEST(RunReport, LeastBudgetIsUnknownUntilTheRuntimeSaysIt) {
  SampleRun run;
  run.attach();
  EXPECT_FALSE(run.report().least_budget);
  run.page->slots[0].least_budget.store(UINT64_MAX);
  EXPECT_FALSE(run.report().least_budget);
}

TEST(RunReport, TriesTheRuntimesOwnLeastBudgetWhereItKnowsOne) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.refused.store(1);
  slot.last_request.store((500_MiB).count);
  slot.least_budget.store((2345_MiB).count);
  EXPECT_EQ(run.report().budget_to_try, 2345_MiB);
  // A least budget below the 2 GiB that were stated cannot explain the refusal, so it is not the figure to try.
  slot.least_budget.store((1234_MiB).count);
  EXPECT_GT(run.report().budget_to_try, 2250_MiB);
}

TEST(RunReport, TriesABudgetThatHoldsThePoolTheRequestAndTheRest) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  EXPECT_FALSE(run.report().budget_to_try);
  slot.refused.store(1);
  slot.last_request.store((500_MiB).count);
  const Bytes need = 1750_MiB + 500_MiB + 105_MiB + 48_MiB;  // pool, request, at the start, warm-up and margin
  ASSERT_TRUE(run.report().budget_to_try);
  EXPECT_GE(*run.report().budget_to_try, need + need / 20);
  EXPECT_LE(*run.report().budget_to_try, need + need / 20 + 16_MiB);
  EXPECT_EQ(run.report().budget_to_try->count % (16_MiB).count, 0u);
  slot.last_request.store(UINT64_MAX);
  EXPECT_FALSE(run.report().budget_to_try);  // the sum must not overflow
}

TEST(RunReport, TriesNoBudgetWhereNothingWasLookedAt) {
  SampleRun run;
  store::LedgerSlot& slot = run.page->slots[0];
  run.page->card.store(8);
  slot.pid.store(1), slot.infeasible.store(1), slot.message.set("there is no card 7");
  run.exits(4);
  EXPECT_FALSE(run.report().budget_to_try);
  slot.outside_expected.store((600_MiB).count);
  EXPECT_TRUE(run.report().budget_to_try);
}

TEST(RunReport, IgnoresASlotThatIsBeingWiped) {
  SampleRun run;
  run.attach().pid.store(-5);
  EXPECT_FALSE(run.report().attached);
}

TEST(RunReport, TheSlotThatWasRefusedSpeaksBeforeTheLargest) {
  SampleRun run;
  run.attach(0).message.set("a warning");
  store::LedgerSlot& small = run.attach(1);
  small.rss_peak.store((100_MiB).count);
  small.refused.store(2);
  small.message.set("refused");
  EXPECT_EQ(run.report().message, "refused");
  run.attach(2).infeasible.store(1);
  run.page->slots[2].message.set("would not start");
  EXPECT_EQ(run.report().message, "would not start");
  EXPECT_EQ(run.report().refused, 2u);
}

}  // namespace
}  // namespace ullage::report
