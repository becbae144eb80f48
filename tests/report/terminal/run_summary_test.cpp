// SPDX-License-Identifier: Apache-2.0
#include "report/sample_run.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sstream>

namespace ullage::report {
namespace {

// Returns the summary of a run, after checking what holds for every summary.
std::string summary(const SampleRun& run) {
  std::ostringstream out;
  write_summary(run.report(), out);
  std::istringstream lines(out.str());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(line.starts_with("ullage: ")) << line;
  EXPECT_LE(count, 6u) << out.str();
  EXPECT_TRUE(out.str().ends_with('\n'));
  return out.str();
}

TEST(RunSummary, OfARunThatFitted) {
  SampleRun run;
  run.attach();
  EXPECT_EQ(summary(run),
            "ullage: done: 12 steps in 24.5 s, 2.0 s a step (median)\n"
            "ullage: peak 1.85 GiB of 2.00 GiB (148.00 MiB left): 1.71 GiB pool and 140.00 MiB outside it\n"
            "ullage: the plain program would have held the same 1.70 GiB of tensors: nothing was moved or recomputed\n"
            "ullage: next: ullage run --memory 2GiB --report run.json dcgan --batch 8   (keeps these figures)\n");
}

TEST(RunSummary, OfARunThatMovedSaysWhatThatCostAndWhatThePlainProgramNeeds) {
  SampleRun run;
  run.moves(run.attach());
  EXPECT_EQ(summary(run),
            "ullage: done: 12 steps in 24.5 s, 2.0 s a step (median)\n"
            "ullage: peak 1.85 GiB of 2.00 GiB (148.00 MiB left): 1.71 GiB pool and 140.00 MiB outside it\n"
            "ullage: the plain program would have held 2.53 GiB of tensors, at least 2.67 GiB with what is outside the "
            "pool\n"
            "ullage: moved out 3.00 GiB and back 2.50 GiB in 12 steps (the program waited 1.0 s of 24.5 s for it; 75 % "
            "of the moving was hidden behind computing), 5.00 MiB of mapped files were let go; least budget 812MiB\n"
            "ullage: next: ullage run --memory 2GiB --report run.json dcgan --batch 8   (keeps these figures)\n");
}

TEST(RunSummary, OfARunThatLetFilesGoSaysSo) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.files_let_go.store((5_MiB).count);
  slot.least_budget.store((812_MiB).count);
  EXPECT_NE(summary(run).find("nothing was moved or recomputed\n"
                              "ullage: 5.00 MiB of mapped files were let go and read again when they were used; least "
                              "budget 812MiB\n"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, OfARunWithAPlanSaysWhatItCostsAndWhatNoneCouldBeat) {
  SampleRun run;
  run.plans(run.moves(run.attach()));
  EXPECT_EQ(
      summary(run),
      "ullage: done: 12 steps in 24.5 s, 2.0 s a step (median)\n"
      "ullage: peak 1.85 GiB of 2.00 GiB (148.00 MiB left): 1.71 GiB pool and 140.00 MiB outside it\n"
      "ullage: the plain program would have held 2.53 GiB of tensors, at least 2.67 GiB with what is outside the "
      "pool\n"
      "ullage: plan: 1.02 GiB, +6 % time (bound +4 %), 41 ops recomputed, 12 storages spilled; adopted at step 4\n"
      "ullage: moved out 3.00 GiB and back 2.50 GiB in 12 steps (the program waited 1.0 s of 24.5 s for it; 75 % "
      "of the moving was hidden behind computing), 5.00 MiB of mapped files were let go; least budget 812MiB\n"
      "ullage: next: ullage run --memory 2GiB --report run.json dcgan --batch 8   (keeps these figures)\n");
}

TEST(RunSummary, OfAPlanThatWasLeftSaysSo) {
  SampleRun run;
  store::LedgerSlot& slot = run.plans(run.attach());
  slot.plans.store(2), slot.plan_deviations.store(3), slot.plan_rescues.store(1), slot.plan_bound_us.store(0);
  slot.plan_recomputes.store(1);
  EXPECT_NE(summary(run).find(
                "ullage: plan: 1.02 GiB, +6 % time, 1 op recomputed, 12 storages spilled; adopted at step 4; "
                "3 deviations from it, 2 plans made; 1 storage was evicted or recomputed on demand in spite of it\n"),
            std::string::npos)
      << summary(run);
  EXPECT_EQ(summary(run).find("nothing was moved or recomputed"), std::string::npos) << summary(run);
  EXPECT_EQ(summary(run).find("no step ran as planned"), std::string::npos) << summary(run);
  slot.plan_steps.store(0);
  EXPECT_NE(summary(run).find("adopted at step 4; no step ran as planned; 3 deviations from it"), std::string::npos)
      << summary(run);
  slot.plan_step_us.store(0);
  EXPECT_NE(summary(run).find("plan: 1.02 GiB, +120.0 ms a step, 1 op recomputed"), std::string::npos) << summary(run);
}

TEST(RunSummary, SaysIfMostOfWhatWasMovedOutWasNotWritten) {
  SampleRun run;
  run.moves(run.attach()).saved_writes.store((2_GiB).count);
  EXPECT_NE(summary(run).find("moved out 3.00 GiB, of which 2.00 GiB had not changed and were not written, and back "
                              "2.50 GiB in 12 steps"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, LeavesOutOfTheMovingWhatIsNotKnown) {
  SampleRun run;
  store::LedgerSlot& slot = run.moves(run.attach());
  slot.steps.store(0);
  slot.least_budget.store(0);
  slot.spill_wait_us.store(0);
  slot.spill_background_us.store(0);
  EXPECT_NE(summary(run).find("moved out 3.00 GiB and back 2.50 GiB (the program waited 0 us of 24.5 s for it), 5.00 "
                              "MiB of mapped files were let go\n"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, SaysForHowLongProgramsWereHeld) {
  SampleRun run;
  run.moves(run.attach());
  run.page->programs_held_us.store(1'500'000);
  EXPECT_NE(summary(run).find("; programs that it started were held for 1.5 s until there was room)"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, SaysWhyMovingFailed) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.spill_message.set("/var/tmp: no space is left");
  EXPECT_NE(summary(run).find("ullage: nothing could be moved out: /var/tmp: no space is left\n"), std::string::npos)
      << summary(run);
  run.moves(slot);
  EXPECT_NE(summary(run).find("least budget 812MiB; moving failed: /var/tmp: no space is left\n"), std::string::npos)
      << summary(run);
  slot.refused.store(1);
  slot.message.set("no room, as nothing could be moved: /var/tmp: no space is left");
  EXPECT_EQ(summary(run).find("moving failed: "), std::string::npos) << summary(run);  // said once
}

TEST(RunSummary, OfARefusalNamesTheLeastBudgetThatTheRuntimeKnows) {
  SampleRun run;
  store::LedgerSlot& slot = run.moves(run.attach());
  slot.refused.store(1);
  slot.least_budget.store((2400_MiB + 1_B).count);
  run.exits(4);
  // The figure is rounded up, so that it suffices when it is typed in.
  EXPECT_NE(summary(run).find("next: ullage run --memory 2401MiB dcgan --batch 8   (at least: ops that were not "
                              "reached may need more)"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, NamesTheReportThatWasWritten) {
  SampleRun run;
  run.attach();
  run.end.report_file = "out/run.json";
  EXPECT_TRUE(summary(run).ends_with("ullage: the report is in out/run.json\n"));
}

TEST(RunSummary, OfARefusalSaysWhyAndWhichBudgetToTry) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.refused.store(1);
  slot.last_request.store((512_MiB).count);
  slot.message.set("aten::add asks for 512.00 MiB, 100.00 MiB are free");
  run.exits(4);
  EXPECT_EQ(summary(run),
            "ullage: refused, the budget cannot be met: 12 steps in 24.5 s, 2.0 s a step (median)\n"
            "ullage: peak 1.85 GiB of 2.00 GiB (148.00 MiB left): 1.71 GiB pool and 140.00 MiB outside it\n"
            "ullage: the plain program would have gone past 1.70 GiB of tensors; how far is not known\n"
            "ullage: 1 request was refused: aten::add asks for 512.00 MiB, 100.00 MiB are free\n"
            "ullage: next: ullage run --memory 2544MiB dcgan --batch 8   (enough for the refused request)\n");
}

TEST(RunSummary, OfARefusalWithoutWordsNamesRequestAndOp) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach();
  slot.refused.store(3);
  slot.last_request.store((512_MiB).count);
  slot.last_op.set("aten::add");
  run.exits(1);
  EXPECT_NE(summary(run).find("ullage: 3 requests were refused, the last of 512.00 MiB by aten::add\n"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, OfABudgetBelowWhatTheProcessHoldsNamesTheLeast) {
  SampleRun run;
  store::LedgerSlot& slot = run.page->slots[0];
  slot.pid.store(1);
  slot.infeasible.store(1);
  slot.outside_expected.store((145_MiB).count);
  slot.message.set("the process holds 105.00 MiB already");
  run.page->budget.store((50_MiB).count);
  run.end.peak = 105_MiB;
  run.end.wall = Seconds{0.5};
  run.exits(4);
  EXPECT_EQ(summary(run),
            "ullage: refused, the budget cannot be met: 500.0 ms, no step was counted\n"
            "ullage: peak 105.00 MiB of 50.00 MiB: 0 B pool and 105.00 MiB outside it\n"
            "ullage: the process holds 105.00 MiB already\n"
            "ullage: next: ullage run --memory 176MiB dcgan --batch 8   (enough to start)\n");
}

TEST(RunSummary, SaysABreachLoudlyWithTheBytes) {
  SampleRun run;
  run.attach();
  run.end.peak = 2_GiB + 1_MiB;
  EXPECT_NE(summary(run).find("OVER THE BUDGET by 1.00 MiB (1048576 bytes): peak 2.00 GiB of 2.00 GiB"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, SaysPlainlyThatAnUnlinkedProgramKeptNothing) {
  SampleRun run;
  run.end.target = {"--", "python3", "-c", "print('a b')"};
  EXPECT_EQ(
      summary(run),
      "ullage: done: 24.5 s, no step was counted\n"
      "ullage: peak 1.85 GiB of 2.00 GiB (148.00 MiB left)\n"
      "ullage: NO BUDGET WAS ENFORCED: no process of the program loaded Ullage's runtime; only the peak was measured\n"
      "ullage: next: ullage run --memory 2GiB --report run.json -- python3 -c 'print('\\''a b'\\'')'   (keeps these "
      "figures)\n");
  run.page->budget.store(0);
  EXPECT_EQ(summary(run).find("NO BUDGET WAS ENFORCED"), std::string::npos);
}

TEST(RunSummary, OfACardSaysSoAndKeepsToItInTheNextCommand) {
  SampleRun run;
  run.moves(run.attach_on_card(1));
  EXPECT_EQ(summary(run),
            "ullage: done: 12 steps in 24.5 s, 2.0 s a step (median)\n"
            "ullage: peak of the card 1.85 GiB of 2.00 GiB (148.00 MiB left): 1.71 GiB pool and 140.00 MiB outside it\n"
            "ullage: the plain program would have held 2.53 GiB of tensors, at least 2.67 GiB with what is outside the "
            "pool\n"
            "ullage: moved out 3.00 GiB and back 2.50 GiB in 12 steps (the program waited 1.0 s of 24.5 s for it; 75 % "
            "of the moving was hidden behind computing), 5.00 MiB of mapped files were let go; least budget 812MiB\n"
            "ullage: next: ullage run --device cuda:1 --memory 2GiB --report run.json dcgan --batch 8   (keeps these "
            "figures)\n");
}

TEST(RunSummary, OfARunOnACardSaysWhoCountedAndHowMuchHostMemoryIsLocked) {
  SampleRun run;
  store::LedgerSlot& slot = run.attach_on_card(0);
  run.moves(slot), run.plans(slot);
  slot.counted_by.store(2), slot.locked.store((3_GiB).count);
  slot.plan_calls[1].store(7), slot.plan_calls[3].store(2);
  EXPECT_NE(summary(run).find(" outside it; counted by the driver, others' bytes by NVML\n"), std::string::npos)
      << summary(run);
  EXPECT_NE(summary(run).find("; 9 driver calls in its last step\n"), std::string::npos) << summary(run);
  EXPECT_NE(summary(run).find("), 3.00 GiB of locked host memory, "), std::string::npos) << summary(run);
  slot.counted_by.store(1), slot.count_note.set("no libnvidia-ml.so.1");
  slot.lock_failure.set("cannot lock 64.00 MiB: out of memory (2)");
  EXPECT_NE(summary(run).find("; counted by the driver alone, others' bytes as this program's: no libnvidia-ml.so.1\n"),
            std::string::npos)
      << summary(run);
  EXPECT_NE(summary(run).find("3.00 GiB of locked host memory (no more: cannot lock 64.00 MiB: out of memory (2)), "),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, OfARefusalOnACardNamesTheCardAndTheLeastBudget) {
  SampleRun run;
  store::LedgerSlot& slot = run.moves(run.attach_on_card(0));
  slot.refused.store(1);
  slot.least_budget.store((2400_MiB).count);
  run.exits(4);
  EXPECT_NE(summary(run).find("next: ullage run --device cuda:0 --memory 2400MiB dcgan --batch 8   (at least: "
                              "ops that were not reached may need more)"),
            std::string::npos)
      << summary(run);
}

TEST(RunSummary, OfACardThatWasNeverReachedSaysOnlyWhatIsKnown) {
  SampleRun run;
  run.page->card.store(1);
  run.page->budget.store(0);
  EXPECT_EQ(
      summary(run),
      "ullage: done: 24.5 s, no step was counted\n"
      "ullage: NO BUDGET WAS ENFORCED on the card: no process of the program loaded Ullage's runtime; no peak was "
      "measured\n"
      "ullage: next: ullage run --device cuda:0 --report run.json dcgan --batch 8   (keeps these "
      "figures)\n");
  run.page->slots[0].pid.store(1);  // uses torch, but its tensors are on the CPU
  EXPECT_NE(summary(run).find("ullage: peak of the card 0 B: 0 B pool and 0 B outside it\n"), std::string::npos)
      << summary(run);
}

TEST(RunSummary, OfAKernelKillBesideACardSuggestsLessHostMemory) {
  SampleRun run;
  run.attach_on_card(0);
  run.dies_of(SIGKILL);
  run.end.oom_kills = OomKills::Rose;
  EXPECT_NE(summary(run).find("next: ullage run --device cuda:0 --host-memory 4GiB dcgan --batch 8   (half of what it "
                              "was given)"),
            std::string::npos)
      << summary(run);
  run.page->host_memory.store(0);
  EXPECT_EQ(summary(run).find("--memory"), std::string::npos) << summary(run);  // the card's bytes were not the cause
}

TEST(RunSummary, OfAKernelKillSuggestsLess) {
  SampleRun run;
  run.attach();
  run.dies_of(SIGKILL);
  run.end.oom_kills = OomKills::Rose;
  const std::string text = summary(run);
  EXPECT_NE(text.find("KILLED BY THE KERNEL for lack of memory: 12 steps"), std::string::npos) << text;
  EXPECT_NE(text.find("next: ullage run --memory 1710MiB dcgan --batch 8   (below what the kernel gave)"),
            std::string::npos)
      << text;
}

TEST(RunSummary, OfSignalNineSaysWhatTheCountsSay) {
  SampleRun run;
  run.attach();
  run.dies_of(SIGKILL);
  EXPECT_NE(summary(run).find("killed by signal 9; the control group counted no out-of-memory kill\n"),
            std::string::npos);
  run.end.oom_kills = OomKills::Unreadable;
  EXPECT_NE(summary(run).find("killed by signal 9; whether for lack of memory cannot be read here"), std::string::npos);
}

TEST(RunSummary, OfAFailureMentionsAKillThatTheGroupCounted) {
  SampleRun run;
  run.attach();
  run.exits(1);
  run.end.oom_kills = OomKills::Rose;
  EXPECT_NE(summary(run).find("the control group counted a process killed for lack of memory while this ran\n"),
            std::string::npos);
}

TEST(RunSummary, KeepsToSixLinesWhenEverythingHappenedAtOnce) {
  SampleRun run;
  store::LedgerSlot& slot = run.plans(run.moves(run.attach()));
  slot.refused.store(9);
  slot.last_request.store(1);
  slot.message.set("one\ntwo\nthree");
  run.end.peak = 3_GiB;
  run.dies_of(SIGKILL);
  run.end.report_file = "r.json";
  run.end.target = {"dcgan", "a\nb"};
  for (const char* part : {"OVER THE BUDGET", "moved out", "one two three", "killed by signal 9", "next: "}) {
    EXPECT_NE(summary(run).find(part), std::string::npos) << part;
  }
}

TEST(RunSummary, CutsALongCommandAtAWord) {
  SampleRun run;
  run.attach();
  run.end.target.assign(50, "abcdefgh");
  const std::string text = summary(run);
  EXPECT_NE(text.find("abcdefgh ...   (keeps these figures)"), std::string::npos) << text;
}

}  // namespace
}  // namespace ullage::report
