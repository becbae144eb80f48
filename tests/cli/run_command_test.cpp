// SPDX-License-Identifier: Apache-2.0
// Runs `ullage run` with real processes: exit codes, outputs, report and summary.
#include "ullage/cli/machine_memory.h"

#include "folders.h"
#include "plan/sample_plan.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>

namespace ullage::cli {
namespace {

// A sanitizer's runtime must be the first library unless this is set, and a preloaded library comes before it.
const std::pair<const std::string, std::string> kUnderSanitizers = {"ASAN_OPTIONS", "verify_asan_link_order=0"};

class RunCommand : public testing::Test {
 protected:
  Finished run(Words words, const std::map<std::string, std::string>& variables = {}) {
    words.insert(words.begin(), {folder_.file("ullage"), "run"});
    return Process(words, variables).finish();
  }
  nlohmann::json report() { return folder_.json("run.json"); }
  std::string report_file() { return folder_.file("run.json"); }
  std::string put_plan(const std::string& name, const plan::PlanFile& plan) {
    std::ofstream out(folder_.path() / name);
    write_plan(plan, out);
    return folder_.file(name);
  }
  // Copies the preload beside ullage, where an installed ullage has it. It does nothing, because these programs have
  // no torch.
  std::string copy_preload() {
    std::filesystem::copy_file(libraries_folder() / "libullage_preload.so", folder_.path() / "libullage_preload.so");
    return folder_.file("libullage_preload.so");
  }
  bool only_what_was_there_is_left() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++count;
    return count == 6;
  }

  ShippedFolder folder_;
};

TEST_F(RunCommand, PassesTheExitCodeOn) {
  EXPECT_EQ(run({"--", "sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(run({"--", "true"}).exit_code, 0);
  EXPECT_EQ(run({"fake", "exit=255"}).exit_code, 255);
}

TEST_F(RunCommand, SignalNIs128PlusN) {
  EXPECT_EQ(run({"--", "sh", "-c", "kill -TERM $$"}).exit_code, 143);
  EXPECT_EQ(run({"fake", "kill=6"}).exit_code, 134);
  const Finished killed = run({"fake", "kill=9"});
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_NE(killed.err.find("killed by signal 9; "), std::string::npos) << killed.err;
}

TEST_F(RunCommand, LeavesStdoutToTheCommandByteForByte) {
  const Finished end = run({"--", "printf", "a\\000b"});
  EXPECT_EQ(end.out, std::string("a\0b", 3));
  EXPECT_NE(end.err.find("ullage: done"), std::string::npos);
}

TEST_F(RunCommand, SummaryIsAtMostSixLinesAndQuietDropsIt) {
  const Finished loud = run({"fake", "attach", "steps=3", "eat=40MiB", "refuse=1GiB", "say=no room", "exit=4"});
  EXPECT_LE(std::count(loud.err.begin(), loud.err.end(), '\n'), 6);
  EXPECT_NE(loud.err.find("ullage: 1 request was refused: no room\n"), std::string::npos) << loud.err;
  EXPECT_EQ(run({"--quiet", "fake", "attach", "steps=3"}).err, "");
}

TEST_F(RunCommand, GivesTheProgramItsWordsUntouched) {
  const Finished end = run({"--quiet", "--", "printf", "[%s]", "--quiet", "--help", "", "--", "a b"});
  EXPECT_EQ(end.out, "[--quiet][--help][][--][a b]");
}

TEST_F(RunCommand, FindsAShippedProgramBesideItselfThroughALinkToo) {
  std::filesystem::create_directory(folder_.path() / "elsewhere");
  std::filesystem::create_symlink(folder_.path() / "ullage", folder_.path() / "elsewhere" / "ullage");
  EXPECT_EQ(Process({folder_.file("elsewhere/ullage"), "run", "--quiet", "fake", "print=here"}).finish().out, "here\n");
}

TEST_F(RunCommand, RunsAScriptWithoutAFirstLineAsAShellDoes) {
  std::ofstream(folder_.path() / "script") << "echo from the script $1\n";
  std::filesystem::permissions(folder_.path() / "script", std::filesystem::perms::owner_all);
  EXPECT_EQ(run({"--quiet", "--", folder_.file("script"), "x"}).out, "from the script x\n");
}

TEST_F(RunCommand, SaysThatAScriptsInterpreterIsMissing) {
  std::ofstream(folder_.path() / "script") << "#!/no/such/interpreter\n";
  std::filesystem::permissions(folder_.path() / "script", std::filesystem::perms::owner_all);
  const Finished end = run({"--", folder_.file("script")});
  EXPECT_EQ(end.exit_code, 127);  // a shell, too, gives 127 for a missing interpreter
  EXPECT_NE(end.err.find("cannot be started: No such file or directory"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("done"), std::string::npos) << end.err;
}

TEST_F(RunCommand, ReportsWhatTheProgramWroteIntoTheLedger) {
  const std::string state(64, 'e');
  const Finished end = run({"--memory", "1.5GiB", "--report", report_file(), "fake", "attach", "steps=3", "eat=50MiB",
                            "state=" + state, "say=fine", "print=out"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out, "out\n");
  const auto json = report();
  EXPECT_EQ(json["format"], "ullage-run");
  EXPECT_EQ(json["command"][0], "ullage-fake");
  EXPECT_EQ(json["command"].size(), 7u);
  EXPECT_EQ(json["outcome"], "done");
  EXPECT_EQ(json["budget_bytes"], 1610612736u);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_DOUBLE_EQ(json["step_seconds_median"].get<double>(), 0.0015);
  EXPECT_EQ(json["pool_peak_bytes"], 49u << 20);
  EXPECT_EQ(json["plain_pool_peak_bytes"], 49u << 20);
  EXPECT_GE(json["process_peak_bytes"], 50u << 20);
  EXPECT_LT(json["process_peak_bytes"], 80u << 20);
  EXPECT_GT(json["outside_pool_bytes"], 100u << 10);
  EXPECT_EQ(json["over_budget_bytes"], 0);
  EXPECT_EQ(json["state_sha256"], state);
  EXPECT_EQ(json["message"], "fine");
  EXPECT_GT(json["seconds"].get<double>(), 0);
  EXPECT_NE(end.err.find("ullage: the report is in " + report_file()), std::string::npos) << end.err;
}

// The facts are what switches.py would write into a Python process.
TEST_F(RunCommand, SaysWhatWasAllowedAndWhatCameOfIt) {
  const std::string noting =
      "echo '{\"torch\": {\"version\": \"2\"}, \"cast\": {\"file\": \"/a/train.py\", \"line\": 7, "
      "\"name\": \"Net\", \"device\": \"cpu\"}}' > $ULLAGE_SWITCHES_FACTS/1.json; "
      "echo $ULLAGE_SWITCHES; test -s $ULLAGE_SWITCHES_SCRIPT";
  const Finished end = run({"--allow", "bf16,evaluation", "--report", report_file(), "--", "sh", "-c", noting});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.out, "autocast=bfloat16 on=cpu evaluation\n");
  EXPECT_NE(
      end.err.find("ullage: results differ in rounding: forward passes ran in bf16, from the first call of Net at "
                   "train.py:7 on\n"),
      std::string::npos)
      << end.err;
  EXPECT_EQ(report()["class"], "rounding");
  EXPECT_EQ(report()["allowed"], (nlohmann::json{"bf16", "evaluation"}));
  EXPECT_EQ(report()["half_ops"], nullptr);  // no process had the runtime
}

TEST_F(RunCommand, SaysThatNothingRanInBf16ThoughQuiet) {
  const Finished end = run({"--quiet", "--allow", "bf16", "--report", report_file(), "fake", "attach"});
  EXPECT_EQ(end.exit_code, 2);  // a shipped program is no Python program
  EXPECT_NE(end.err.find("--allow: is for Python programs, and ullage-fake is not one; give rounding, and the run may "
                         "add --precision, if 'ullage help fake' says that it has that option"),
            std::string::npos)
      << end.err;
  const Finished other = run({"--quiet", "--allow", "bf16", "--report", report_file(), "--", "sh", "-c", "exit 5"});
  EXPECT_EQ(other.exit_code, 5);
  EXPECT_NE(other.err.find("ullage: NOTHING RAN IN BF16, and no bit differs: no Python process of the program imported "
                           "torch"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(report()["class"], "bit-equal");
}

TEST_F(RunCommand, RoundingOfACommandIsBf16IfNeeded) {
  const Finished end =
      run({"--allow", "rounding", "--report", report_file(), "--", "sh", "-c", "echo [$ULLAGE_SWITCHES]"});
  EXPECT_EQ(end.out, "[autocast=bfloat16 on=cpu if_needed]\n");
  EXPECT_EQ(report()["allowed"], (nlohmann::json{"bf16", "if-needed"}));
}

TEST_F(RunCommand, RunsAShippedProgramInAnotherWayOnlyIfThatIsNeeded) {
  const auto need = [&](int rows) {
    const Finished end =
        Process({folder_.file("ullage"), "predict", "--json", "fake", "--rows=" + std::to_string(rows), "work=64"})
            .finish();
    return nlohmann::json::parse(end.out)["process_peak_bytes"].get<std::uint64_t>();
  };
  const auto in = [&](std::uint64_t memory, const std::string& classes) {
    return run({"--memory", std::to_string(memory), "--allow", classes, "--report", report_file(), "fake", "--rows=64",
                "work=64"});
  };
  const Finished whole = in(need(64), "rounding,different");
  EXPECT_EQ(whole.out, "64 rows\n");
  EXPECT_NE(whole.err.find("ullage: --allow chose the program as it is: it fits, so no result changes\n"),
            std::string::npos)
      << whole.err;
  EXPECT_EQ(report()["ways"].size(), 1u);
  EXPECT_EQ(report()["allowed"], (nlohmann::json{"rounding", "different"}));

  const std::uint64_t of_23 = need(23);
  const Finished fewer = in(of_23, "rounding");
  EXPECT_EQ(fewer.out, "23 rows\nfewer are allowed\n");
  EXPECT_NE(fewer.err.find("ullage: --allow chose --rows 23 --allow fewer (rounding): the cheapest that fits, "),
            std::string::npos)
      << fewer.err;
  EXPECT_NE(fewer.err.find("ullage: results differ by --rows 23 --allow fewer (rounding)\n"), std::string::npos)
      << fewer.err;
  const nlohmann::json ways = report()["ways"];
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_EQ(ways[0]["outcome"], "infeasible");
  EXPECT_GT(ways[0]["least_memory_bytes"].get<std::uint64_t>(), of_23);
  EXPECT_TRUE(ways[1]["chosen"]);
  EXPECT_EQ(ways[1]["least_memory_bytes"], of_23);
  EXPECT_EQ(report()["class"], "rounding");

  const Finished again =
      run({"--memory", std::to_string(of_23), "--allow", "rounding", "fake", "--rows=64", "work=64"});
  EXPECT_NE(again.err.find(" --report run.json fake --rows=23 work=64 --allow fewer"), std::string::npos) << again.err;

  const Finished none = in(of_23, "different");  // no option of it is of this class
  EXPECT_EQ(none.out, "64 rows\n");
  EXPECT_NE(none.err.find("ullage: --allow: nothing that is allowed is predicted to fit; the program runs as it is\n"),
            std::string::npos)
      << none.err;
}

TEST_F(RunCommand, RunsAsItIsIfItsNeedsCannotBePredicted) {
  const Finished end = run({"--memory", "8GiB", "--allow", "rounding", "fake", "print=here"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(end.out.ends_with("here\n")) << end.out;
  EXPECT_NE(end.err.find("ullage: --allow: what the program needs could not be predicted; it runs as it is\n"),
            std::string::npos)
      << end.err;
}

TEST_F(RunCommand, AllowsNothingUnlessAsked) {
  const Finished end = run({"--report", report_file(), "--", "sh", "-c", "echo [$ULLAGE_SWITCHES_SCRIPT]"});
  EXPECT_EQ(end.out, "[]\n");
  EXPECT_EQ(end.err.find("BF16"), std::string::npos) << end.err;
  EXPECT_EQ(report()["class"], "bit-equal");
  EXPECT_EQ(report()["allowed"], nlohmann::json::array());
  EXPECT_EQ(report()["half_ops"], nullptr);
}

TEST_F(RunCommand, RefusesToAllowWhatItCannot) {
  for (const Words& words :
       {Words{"--allow", "fp16", "--", "true"}, Words{"--allow", "", "--", "true"},
        Words{"--allow", "bf16,if-needed", "--no-plan", "--", "true"},
        Words{"--allow", "rounding", "--no-plan", "fake"}, Words{"--allow", "different", "--", "true"},
        Words{"--allow", "rounding", "--device", "cuda", "fake"}, Words{"--allow", "bf16", "--dry", "--", "true"},
        Words{"--allow", "bf16"}, Words{"--allow", "bf16", "--"}}) {
    EXPECT_EQ(run(words).exit_code, 2) << testing::PrintToString(words);
  }
  EXPECT_NE(run({"--allow", "bf16", "--dry", "--", "true"}).err.find("ullage advise --device CARD"), std::string::npos);
}

TEST_F(RunCommand, TellsTheProgramWhereToSpillAndHowMuch) {
  const std::string folder = folder_.path().string();
  EXPECT_EQ(run({"--spill", folder + ":1MiB", "fake", "spill-place"}).out, folder + " 1048576\n");
  const std::string free = run({"--spill", folder, "fake", "spill-place"}).out;
  EXPECT_TRUE(free.starts_with(folder + " ")) << free;
  EXPECT_GT(std::stoull(free.substr(folder.size())), 1u << 20) << free;
}

TEST_F(RunCommand, SpillsToATemporaryFolderWhereNoneIsNamed) {
  const std::string folder = folder_.path().string();
  const Words words = {folder_.file("ullage"), "run", "--quiet", "fake", "spill-place"};
  const Finished end = Process(words, {{"TMPDIR", folder}}).finish();
  EXPECT_TRUE(end.out.starts_with(folder + " ")) << end.out;
  EXPECT_EQ(end.err, "");
}

TEST_F(RunCommand, RefusesToSpillIntoMemory) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  const Finished end = run({"--spill", "/dev/shm", "fake", "print=never"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(end.err.starts_with("ullage: --spill: /dev/shm: is memory")) << end.err;
}

// Runs in a mount namespace of its own, in which every folder that could be chosen is in memory.
TEST_F(RunCommand, WarnsWhereNothingCanBeSpilledAndRunsOn) {
  if (Process({"/usr/bin/unshare", "-rm", "true"}).finish().exit_code != 0) {
    GTEST_SKIP() << "no mount namespace can be made here";
  }
  const auto run_there = [&](const std::string& options) {
    const std::string line = "set -e; mount -t tmpfs none /mnt; cp " + folder_.file("ullage") + " " +
                             folder_.file("ullage-fake") +
                             " /mnt; mount --bind /mnt /var/tmp; mount --bind /mnt /tmp; "
                             "cd /mnt; TMPDIR=/mnt exec ./ullage run --quiet " +
                             options + " fake spill-place";
    return Process({"/usr/bin/unshare", "-rm", "/bin/sh", "-c", line}).finish();
  };
  const Finished end = run_there("");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out, " 0\n");
  EXPECT_TRUE(end.err.starts_with("ullage: warning: no folder to spill to: /mnt: is memory")) << end.err;
  EXPECT_TRUE(end.err.ends_with("; nothing can be moved out of memory\n")) << end.err;
  const std::string of_card = run_there("--device cuda").err;
  EXPECT_TRUE(of_card.ends_with("; nothing can be moved out of host memory\n")) << of_card;
  const std::string without = run_there("--device cuda --host-memory none").err;
  EXPECT_TRUE(without.ends_with("; nothing can be moved out of the card\n")) << without;
}

TEST_F(RunCommand, ReportsWhatWasMoved) {
  const Finished end = run({"--memory", "1GiB", "--report", report_file(), "fake", "attach", "steps=2", "look",
                            "move=1GiB", "floor=700MiB"});
  const auto json = report();
  EXPECT_EQ(json["spilled_bytes"], 2u << 30);
  EXPECT_EQ(json["restored_bytes"], 1u << 30);
  EXPECT_DOUBLE_EQ(json["spill_seconds"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(json["spill_background_seconds"].get<double>(), 1.5);
  EXPECT_EQ(json["least_budget_bytes"], 700u << 20);
  EXPECT_NE(end.err.find("ullage: moved out 2.00 GiB and back 1.00 GiB in 2 steps (the program waited 500.0 ms of "),
            std::string::npos)
      << end.err;
}

TEST_F(RunCommand, ReportsThePlanThatWasFollowed) {
  const Finished end =
      run({"--report", report_file(), "fake", "attach", "steps=8", "look", "eat=4MiB", "follow-plan=900MiB"});
  const auto json = report();
  EXPECT_EQ(json["plan"]["peak_bytes"], 900u << 20);
  EXPECT_EQ(json["plan"]["adopted_at_step"], 4);
  EXPECT_DOUBLE_EQ(json["plan"]["step_seconds"].get<double>(), 0.001);
  EXPECT_DOUBLE_EQ(json["plan"]["overhead_seconds"].get<double>(), 0.0005);
  EXPECT_EQ(json["plan"]["lower_bound_seconds"], nullptr);
  EXPECT_EQ(json["recomputed_ops"], 6);
  EXPECT_DOUBLE_EQ(json["recompute_seconds"].get<double>(), 0.25);
  EXPECT_NE(
      end.err.find("ullage: plan: 900.00 MiB, +50 % time, 3 ops recomputed, 0 storages spilled; adopted at step 4\n"),
      std::string::npos)
      << end.err;
}

TEST_F(RunCommand, TellsTheProgramWhichPlanToFollow) {
  EXPECT_EQ(run({"--quiet", "fake", "plan"}).out, " 0\n");
  EXPECT_EQ(run({"--quiet", "--no-plan", "fake", "plan"}).out, " 1\n");
  const std::string file = put_plan("plan.json", plan::sample_plan_file());
  EXPECT_EQ(run({"--quiet", "--memory", "1GiB", "--plan", file, "fake", "plan"}).out, file + " 0\n");
  // The path is absolute, so the program finds the plan even if it changes its folder.
  const Finished end =
      Process({"/bin/sh", "-c",
               "cd " + folder_.path().string() + " && ./ullage run --quiet --memory 1GiB --plan plan.json fake plan"})
          .finish();
  EXPECT_EQ(end.out, file + " 0\n") << end.err;
}

TEST_F(RunCommand, RefusesAPlanBeforeTheStartWhereItCannotServe) {
  const Finished missing = run({"--plan", folder_.file("none.json"), "fake", "print=never"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.out, "");
  EXPECT_TRUE(missing.err.starts_with("ullage: --plan: " + folder_.file("none.json"))) << missing.err;

  std::ofstream(folder_.path() / "cut.json") << "{\"format\": \"ullage-plan\", \"version\": 1";
  const Finished cut = run({"--plan", folder_.file("cut.json"), "fake", "print=never"});
  EXPECT_EQ(cut.exit_code, 3);
  EXPECT_EQ(cut.out, "");

  plan::PlanFile none = plan::sample_plan_file();
  none.plan.outcome = plan::Plan::Outcome::Infeasible;
  none.plan.schedule = {};
  const Finished infeasible = run({"--plan", put_plan("none.json", none), "fake", "print=never"});
  EXPECT_EQ(infeasible.exit_code, 4);
  EXPECT_EQ(infeasible.out, "");

  const Finished both = run({"--no-plan", "--plan", put_plan("plan.json", plan::sample_plan_file()), "fake"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("--plan: does not go together with --no-plan"), std::string::npos) << both.err;
}

TEST_F(RunCommand, RefusesAPlanOfAnotherDevicesBytes) {
  plan::PlanFile plan = plan::sample_plan_file();
  const std::string of_memory = put_plan("memory.json", plan);
  plan.device = "cuda:0";
  const std::string of_card = put_plan("card.json", plan);
  const Finished here = run({"--memory", "1GiB", "--plan", of_card, "fake", "print=never"});
  EXPECT_EQ(here.exit_code, 2);
  EXPECT_EQ(here.out, "");
  EXPECT_NE(here.err.find("the plan is for bytes on cuda:0, the budget for bytes on cpu"), std::string::npos)
      << here.err;
  const Finished there = run({"--device", "cuda", "--memory", "1GiB", "--plan", of_memory, "fake", "print=never"});
  EXPECT_EQ(there.exit_code, 2);
  EXPECT_EQ(there.out, "");
  EXPECT_EQ(run({"--quiet", "--device", "cuda", "--memory", "1GiB", "--plan", of_card, "fake", "plan"}).out,
            of_card + " 0\n");
}

TEST_F(RunCommand, WarnsWhereThePlanIsForMoreThanTheBudget) {
  const std::string file = put_plan("plan.json", plan::sample_plan_file());  // needs 310 MiB
  const Finished less = run({"--quiet", "--memory", "309MiB", "--plan", file, "fake", "print=ran"});
  EXPECT_EQ(less.exit_code, 0);
  EXPECT_EQ(less.out, "ran\n");
  EXPECT_TRUE(
      less.err.starts_with("ullage: warning: the plan is for 310.00 MiB (325058560 bytes), the budget is 309.00"))
      << less.err;
  EXPECT_EQ(run({"--quiet", "--memory", "310MiB", "--plan", file, "fake"}).err, "");
}

TEST_F(RunCommand, PutsThePreloadBeforeWhatThePersonHad) {
  const Words words = {"--quiet", "fake", "variable=LD_PRELOAD"};
  EXPECT_EQ(run(words).out, "(not set)\n");  // no preload lies beside ullage
  const std::string library = copy_preload();
  EXPECT_EQ(run(words, {kUnderSanitizers}).out, library + "\n");
  EXPECT_EQ(run(words, {kUnderSanitizers, {"LD_PRELOAD", "libm.so.6 libdl.so.2"}}).out,
            library + ":libm.so.6 libdl.so.2\n");
}

TEST_F(RunCommand, PutsThePreloadInOnceWhereARunIsInsideARun) {
  const std::string library = copy_preload();
  const Words words = {"--quiet", "--", folder_.file("ullage"), "run", "--quiet", "fake", "variable=LD_PRELOAD"};
  EXPECT_EQ(run(words, {kUnderSanitizers}).out, library + "\n");
}

TEST_F(RunCommand, SaysThatAPathWithABlankCannotBePreloaded) {
  const std::string folder = folder_.file("a blank");
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(folder_.file("ullage"), folder + "/ullage");
  std::filesystem::copy_file(copy_preload(), folder + "/libullage_preload.so");
  const Finished end =
      Process({folder + "/ullage", "run", "--quiet", "--", "sh", "-c", "echo ${LD_PRELOAD-none}"}).finish();
  EXPECT_EQ(end.out, "none\n");
  EXPECT_NE(end.err.find("warning: " + folder + "/libullage_preload.so: a path with a blank"), std::string::npos)
      << end.err;
}

TEST_F(RunCommand, RecordsWhereAskedAndNamesTheNextCommand) {
  const std::string file = folder_.file("run.ullage");
  const Finished end = run({"--record", file, "--report", report_file(), "fake", "train=2"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_NE(end.err.find("ullage: recorded 3 steps: " + file + "; next: ullage explain " + file + "\n"),
            std::string::npos)
      << end.err;
  EXPECT_GT(std::filesystem::file_size(file), 100u);
  EXPECT_EQ(report()["recording"]["file"], file);
  EXPECT_EQ(report()["recording"]["written"], true);
  EXPECT_EQ(report()["recording"]["steps"], 3);
}

TEST_F(RunCommand, RecordsAtARelativePathThoughTheProgramGoesElsewhere) {
  const std::string line = "cd " + folder_.path().string() +
                           " && ./ullage run --quiet --record run.ullage -- sh -c 'cd / && exec " +
                           folder_.file("ullage-fake") + " train=2'";
  EXPECT_EQ(Process({"/bin/sh", "-c", line}).finish().err, "");
  EXPECT_TRUE(std::filesystem::exists(folder_.file("run.ullage")));
}

TEST_F(RunCommand, SaysThatTheTraceIsMissing) {
  const std::string file = folder_.file("run.ullage");
  const Finished unreached = run({"--record", file, "--quiet", "--", "true"});
  EXPECT_EQ(unreached.exit_code, 1);
  EXPECT_EQ(unreached.err,
            "ullage: " + file + ": the trace was not written: no process of the program loaded Ullage's runtime\n");
  const Finished lost = run({"--record", file, "--report", report_file(), "--quiet", "fake", "lose-trace"});
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_EQ(lost.err, "ullage: " + file + ": the trace was not written: the disk is full\n");
  EXPECT_EQ(report()["recording"]["written"], false);
  EXPECT_TRUE(report()["recording"]["steps"].is_null());
  EXPECT_EQ(run({"--record", file, "--quiet", "fake", "lose-trace", "exit=7"}).exit_code, 7);
}

TEST_F(RunCommand, FiguresSurviveTheDeathOfTheProgram) {
  EXPECT_EQ(run({"--report", report_file(), "fake", "attach", "steps=5", "look", "kill=9"}).exit_code, 137);
  EXPECT_EQ(report()["outcome"], "failed");
  EXPECT_EQ(report()["steps"], 5);
  EXPECT_EQ(report()["exit_code"], 137);
}

TEST_F(RunCommand, SaysInfeasibleWhenTheRuntimeWouldNotStart) {
  const Finished end = run({"--memory", "1MiB", "--report", report_file(), "fake", "attach", "look", "infeasible",
                            "say=the process holds 5 MiB already", "exit=4"});
  EXPECT_EQ(end.exit_code, 4);
  EXPECT_EQ(report()["outcome"], "infeasible");
  EXPECT_EQ(report()["message"], "the process holds 5 MiB already");
  EXPECT_GT(report()["over_budget_bytes"], 0);
  EXPECT_NE(end.err.find("refused, the budget cannot be met"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("(enough to start)"), std::string::npos) << end.err;
}

TEST_F(RunCommand, SaysLoudlyThatABudgetWasPassed) {
  const Finished end = run({"--memory", "20MiB", "fake", "attach", "eat=40MiB"});
  EXPECT_NE(end.err.find("ullage: OVER THE BUDGET by "), std::string::npos) << end.err;
}

TEST_F(RunCommand, SaysThatAnUnlinkedCommandKeptNothing) {
  const Finished end = run({"--report", report_file(), "fake", "eat=400MiB"});
  EXPECT_NE(end.err.find("NO BUDGET WAS ENFORCED: "), std::string::npos) << end.err;
  EXPECT_TRUE(report()["steps"].is_null());
  EXPECT_TRUE(report()["pool_peak_bytes"].is_null());
  EXPECT_GE(report()["process_peak_bytes"], 400u << 20);
  EXPECT_LT(report()["process_peak_bytes"], 440u << 20);
}

TEST_F(RunCommand, SeesAProgramThatAShellStarted) {
  run({"--report", report_file(), "--", "sh", "-c", folder_.file("ullage-fake") + " attach steps=2; exit 5"});
  EXPECT_EQ(report()["steps"], 2);
  EXPECT_EQ(report()["exit_code"], 5);
}

TEST_F(RunCommand, WarnsOfABudgetAboveTheMachines) {
  const Finished end = run({"--memory", "100TiB", "--quiet", "--", "true"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(end.err.starts_with("ullage: warning: the budget of 100.00 TiB is more than the ")) << end.err;
}

TEST_F(RunCommand, AutoGivesABudgetOfThisMachine) {
  run({"--report", report_file(), "--", "true"});
  EXPECT_GT(report()["budget_bytes"], 1u << 20);
}

TEST_F(RunCommand, TellsTheProgramWhoseBytesTheBudgetIsOf) {
  EXPECT_EQ(run({"--memory", "1MiB", "fake", "card"}).out, "0 1048576 0\n");
  EXPECT_EQ(run({"--memory", "1MiB", "--device", "cpu", "fake", "card"}).out, "0 1048576 0\n");
  const Words host = {"--memory", "1MiB", "--host-memory", "2MiB", "--device"};
  const auto on = [&](const std::string& device) {
    Words words = host;
    words.insert(words.end(), {device, "fake", "card"});
    return run(words).out;
  };
  EXPECT_EQ(on("cuda"), "1 1048576 2097152\n");
  EXPECT_EQ(on("cuda:0"), "1 1048576 2097152\n");
  EXPECT_EQ(on("cuda:127"), "128 1048576 2097152\n");
}

TEST_F(RunCommand, LeavesWhatIsFreeOnACardToTheRuntime) {
  const Finished end = run({"--device", "cuda", "--host-memory", "none", "--report", report_file(), "fake", "card",
                            "attach", "work-out-budget=70GiB"});
  EXPECT_EQ(end.out, "1 0 0\n");
  EXPECT_EQ(report()["budget_bytes"], 70ull << 30);
}

TEST_F(RunCommand, GivesWhatLeavesACardHalfOfTheMachineUnlessToldOtherwise) {
  const Bytes half = most_there_is(read_machine_memory({})).value() / 2;
  EXPECT_EQ(run({"--device", "cuda", "fake", "card"}).out, "1 0 " + std::to_string(half.count) + "\n");
  EXPECT_EQ(run({"--device", "cuda", "--host-memory", "none", "fake", "card"}).out, "1 0 0\n");
  EXPECT_EQ(run({"--device", "cuda", "--host-memory", "0", "fake", "card"}).out, "1 0 0\n");
}

TEST_F(RunCommand, WarnsOfNoMachineWhereTheBudgetIsACards) {
  EXPECT_EQ(run({"--device", "cuda", "--memory", "100TiB", "--quiet", "--", "true"}).err, "");
}

TEST_F(RunCommand, ReportsOfACardWhatTheRuntimeSaysAndNoResidentBytes) {
  const std::string fake = folder_.file("ullage-fake");
  const std::string line = fake + " eat=40MiB nap=300 & " + fake + " attach steps=3 hold-on-card=16MiB nap=300; wait";
  const Finished end =
      run({"--device", "cuda:2", "--memory", "20MiB", "--report", report_file(), "--", "sh", "-c", line});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(report()["device"], "cuda:2");
  EXPECT_EQ(report()["process_peak_bytes"], 16u << 20);
  EXPECT_EQ(report()["outside_pool_bytes"], 4u << 20);
  EXPECT_EQ(report()["over_budget_bytes"], 0);
  EXPECT_TRUE(report()["tree_peak_bytes"].is_null());
  EXPECT_NE(
      end.err.find(
          "ullage: peak of the card 16.00 MiB of 20.00 MiB (4.00 MiB left): 12.00 MiB pool and 4.00 MiB outside it\n"),
      std::string::npos)
      << end.err;
}

TEST_F(RunCommand, ReplacesAReportAndLeavesNoOtherFile) {
  std::ofstream(report_file()) << "old";
  run({"--report", report_file(), "--", "true"});
  EXPECT_EQ(report()["outcome"], "done");
  std::filesystem::remove(report_file());
  EXPECT_TRUE(only_what_was_there_is_left());
}

TEST_F(RunCommand, WritesThroughALinkAndKeepsIt) {
  std::ofstream(folder_.path() / "real.json") << "old";
  std::filesystem::create_symlink("real.json", folder_.path() / "run.json");
  run({"--report", report_file(), "--", "true"});
  EXPECT_TRUE(std::filesystem::is_symlink(report_file()));
  EXPECT_EQ(folder_.json("real.json")["outcome"], "done");
}

TEST_F(RunCommand, WritesThroughALinkToAFileThatIsNotThereYet) {
  std::filesystem::create_symlink("second", folder_.path() / "run.json");
  std::filesystem::create_symlink(folder_.path() / "real.json", folder_.path() / "second");
  run({"--report", report_file(), "--", "true"});
  EXPECT_TRUE(std::filesystem::is_symlink(report_file()));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path() / "second"));
  EXPECT_EQ(folder_.json("real.json")["outcome"], "done");
}

TEST_F(RunCommand, KeepsTheOldReportWhenTheCommandCannotBeStarted) {
  std::ofstream(report_file()) << "{\"old\":1}";
  EXPECT_EQ(run({"--report", report_file(), "--", "no-such-command-here"}).exit_code, 127);
  EXPECT_EQ(report()["old"], 1);
}

TEST_F(RunCommand, SaysWhenTheReportCannotBeWrittenAfterAll) {
  const std::string inner = folder_.file("gone");
  std::filesystem::create_directory(inner);
  const Finished end = run({"--report", inner + "/run.json", "--", "rmdir", inner});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.err.find("the report cannot be written"), std::string::npos) << end.err;
  EXPECT_EQ(run({"--report", inner, "--", "sh", "-c", "mkdir " + inner + "; exit 3"}).exit_code, 3);
}

TEST_F(RunCommand, KeepsTheExitCodeWhenNobodyReadsTheSummary) {
  const std::string line =
      folder_.file("ullage") + " run -- sh -c 'sleep 0.2; exit 5' 2>&1 >/dev/null | true; echo ${PIPESTATUS[0]}";
  EXPECT_EQ(Process({"/bin/bash", "-c", line}).finish().out, "5\n");
}

TEST_F(RunCommand, ALedgerOfAnOuterRunIsNotTheInnerOnes) {
  const Finished end = run({"--quiet", "--", folder_.file("ullage"), "run", "--memory", "77MiB", "--report",
                            report_file(), "fake", "attach", "steps=1"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(report()["budget_bytes"], 77u << 20);
  EXPECT_EQ(report()["steps"], 1);
}

}  // namespace
}  // namespace ullage::cli
