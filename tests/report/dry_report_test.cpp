// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/dry_report.h"

#include "folders.h"
#include "golden_file.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ullage::report {
namespace {

DryReport fitting() {
  DryReport report;
  report.command = {"python", "train.py"};
  report.card_name = "NVIDIA GeForce RTX 3090", report.card_word = "rtx3090", report.card_memory = 24_GiB;
  report.cards = {{6_GiB, 5_GiB, 1_GiB, 3_GiB, 4_GiB, 5_GiB}};
  report.torch = "2.13.0+cu130";
  report.ended_by = DryReport::EndedBy::Steps;
  report.steps_of = {{3, 1}};
  report.wall = {8.5}, report.host_peak = 700_MiB, report.pinned_peak = 4_KiB;
  report.reads = 3, report.read_bytes = Bytes{12};
  return report;
}

DryReport too_large() {
  DryReport report = fitting();
  report.ended_by = DryReport::EndedBy::Program, report.exit_code = 1, report.steps_of.clear();
  report.cards.push_back({});
  report.refused = {{0, 30_GiB, {"train.py", 12, "step"}}};
  report.error = {"torch.OutOfMemoryError", "CUDA out of memory.", {"train.py", 12, "step"}};
  report.unknown_functions = {"cufftNew"};
  report.notes = {"workspaces of cuDNN"};
  report.bounds = {{"nonzero", "the most", {"train.py", 7, ""}, 3}};
  return report;
}

std::string terminal(const DryReport& report) {
  std::ostringstream out;
  write_terminal(report, "", out);
  return out.str();
}

std::string json(const DryReport& report) {
  std::ostringstream out;
  write_json(report, out);
  return out.str();
}

void expect(const char* file, const std::string& text) { expect_golden(tests_folder() / "report/golden" / file, text); }

TEST(DryReport, DoesNotSayThatItFitsIfNoStepEnded) {
  DryReport report = fitting();
  report.ended_by = DryReport::EndedBy::Seconds;
  EXPECT_NE(json(report).find("\"fits\": true"), std::string::npos);
  report.steps_of.clear();
  EXPECT_NE(json(report).find("\"fits\": null"), std::string::npos);
  EXPECT_TRUE(
      terminal(report).starts_with("not known whether it fits (the time was over before a step ended): 6.00 GiB"))
      << terminal(report);
}

TEST(DryReport, SaysWhichStepsHadHowManyOptimizers) {
  DryReport report = fitting();
  report.ended_by = DryReport::EndedBy::Program, report.steps_of = {{1, 1}, {3, 297}};
  EXPECT_NE(terminal(report).find("  1 step of 1 optimizer and 3 steps of 297 optimizers, to the program's own end;"),
            std::string::npos)
      << terminal(report);
  EXPECT_NE(json(report).find("\"steps\": 4,"), std::string::npos);
}

TEST(DryReport, OfAProgramThatFits) {
  DryReport report = fitting();
  report.largest = {"batch", 128, 129};
  expect("dry_fits.txt", terminal(report));
  expect("dry_fits.json", json(report));
}

TEST(DryReport, OfAProgramThatIsTooLarge) {
  expect("dry_too_large.txt", terminal(too_large()));
  expect("dry_too_large.json", json(too_large()));
}

TEST(DryReport, SaysThatThisMachineWasFull) {
  DryReport report = fitting();
  report.exit_code = 137, report.host_ran_out = true, report.host_total = 24_GiB;
  const std::string text = terminal(report);
  EXPECT_NE(text.find("killed: the program filled this machine's memory (24.00 GiB), not the card's"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("DOES NOT FIT"), std::string::npos) << text;
}

TEST(DryReport, SaysWhatFilledThisMachine) {
  DryReport report = fitting();
  const DryReport::Place load{"load.py", 3, "<module>"}, train{"load.py", 9, "train"};
  report.exit_code = 137, report.host_ran_out = true;
  report.host_filled = {
      300_MiB, 24_GiB, 4711, "python load.py", 20_GiB, 2_GiB, 1_GiB, train, {{train, 3_GiB}, {load, 17_GiB}}};
  const std::string text = terminal(report);
  EXPECT_NE(
      text.find("filled this machine's memory, not the card's: 300.00 MiB of 24.00 GiB were left\n"
                "  process 4711 (python load.py) held 20.00 GiB, and was at load.py:9 in train; 1.00 GiB were locked "
                "for the card; its 2.00 GiB of files' pages do not count"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("  it grew by 17.00 GiB at load.py:3, by 3.00 GiB at load.py:9 in train\n  what to do: "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("killed: "), std::string::npos) << text;
  EXPECT_NE(json(report).find(R"("held_bytes": 21474836480)"), std::string::npos) << json(report);
  report.host_filled->place = {}, report.host_filled->growth.clear(), report.host_filled->pinned = {};
  EXPECT_NE(terminal(report).find("(python load.py) held 20.00 GiB; its 2.00 GiB of files'"), std::string::npos);
  EXPECT_EQ(terminal(report).find("it grew by"), std::string::npos);
}

TEST(DryReport, TellsBoundsFromGuesses) {
  DryReport report = fitting();
  EXPECT_NE(json(report).find(R"("law": "exact")"), std::string::npos);
  report.bounds = {{"nonzero", "the most", {}, 1}};
  EXPECT_NE(json(report).find(R"("law": "bound")"), std::string::npos);
  report.bounds.push_back({"bincount", "one bin", {"train.py", 8, ""}, 1});
  EXPECT_NE(json(report).find(R"("law": "none")"), std::string::npos);
  EXPECT_NE(
      terminal(report).find("a guess: the size of bincount's result at train.py:8 depends on values that a dry run "
                            "does not have; assumed: one bin (1 call)\n"),
      std::string::npos);
}

TEST(DryReport, SaysHowFarALargestSizeIsKnown) {
  const auto last_line = [](std::optional<std::int64_t> fits, std::optional<std::int64_t> too_large) {
    DryReport report = fitting();
    report.largest = {"batch", fits, too_large};
    const std::string text = terminal(report);
    return text.substr(text.rfind("  ") + 2);
  };
  EXPECT_EQ(last_line({}, 1), "no batch fits\n");
  EXPECT_EQ(last_line(64, {}), "batch 64 fits; larger ones were not tried\n");
  EXPECT_EQ(last_line(64, 65), "the largest batch that fits: 64\n");
  EXPECT_EQ(last_line(64, 128), "batch 64 fits, 128 does not; between them the program fails for another reason\n");
}

TEST(DryReport, AnErrorThatIsNoLackOfMemoryIsToldApart) {
  DryReport report = fitting();
  report.exit_code = 1, report.ended_by = DryReport::EndedBy::Program;
  report.error = {"AssertionError", "loss is zero", {"train.py", 7, ""}};
  EXPECT_FALSE(report.ran_out());
  EXPECT_EQ(terminal(report).find("not known whether it fits (the program failed): 6.00 GiB"), 0u);
  EXPECT_NE(json(report).find("\"fits\": null"), std::string::npos);
  EXPECT_NE(terminal(report).find("AssertionError at train.py:7: loss is zero; kernels do not run"), std::string::npos);
}

}  // namespace
}  // namespace ullage::report
