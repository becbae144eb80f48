// SPDX-License-Identifier: Apache-2.0
// Runs `ullage predict` with real processes that record made-up trainings: exit codes, outputs, what it runs and
// where.
#include "fake_training.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <string>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
using Kind = FakeTraining::Kind;

class PredictCommand : public testing::Test {
 protected:
  PredictCommand() {
    fs::create_directory(folder_.path() / "tmp");
    fs::create_directory(folder_.path() / "work");
  }

  Finished predict(Words words) {
    words.insert(words.begin(), {folder_.file("ullage"), "predict"});
    return Process(words, {{"TMPDIR", folder_.file("tmp")}}).finish();
  }
  // Predicts for the command `ullage-fake WORDS`.
  Finished predict_fake(Words options, const Words& words) {
    options.insert(options.end(), {"--", folder_.file("ullage-fake")});
    options.insert(options.end(), words.begin(), words.end());
    return predict(options);
  }
  nlohmann::json predict_json(Words options, const Words& words) {
    options.insert(options.begin(), "--json");
    const Finished end = predict_fake(options, words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    said_ = end.err;
    return end.exit_code == 0 ? nlohmann::json::parse(end.out) : nlohmann::json();
  }
  bool nothing_is_left() const { return fs::is_empty(folder_.path() / "tmp"); }

  ShippedFolder folder_;
  std::string said_;  // stderr of the last predict_json()
};

const Words kBatch128 = {"--vary", "batch=2,3,4", "--at", "batch=128"};

// Checks what must hold for every answer.
void expect_sums(const nlohmann::json& json) {
  std::uint64_t rows = 0, owners = 0;
  for (const auto& row : json["rows"]) rows += row["bytes"].get<std::uint64_t>();
  for (const auto& owner : json["owners"]) owners += owner["bytes"].get<std::uint64_t>();
  EXPECT_EQ(rows, json["process_peak_bytes"]);
  EXPECT_EQ(owners, json["pool_peak_bytes"]);
}

TEST_F(PredictCommand, PredictsALargeSizeFromThreeSmallOnes) {
  const auto json = predict_json(kBatch128, {"train={batch}"});
  EXPECT_EQ(json["format"], "ullage-prediction");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["at"]["batch"], 128);
  EXPECT_EQ(json["law"], "exact");
  EXPECT_EQ(json["measured"], false);
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Affine, 128}));
  EXPECT_GE(json["process_peak_bytes"], peak_of({Kind::Affine, 128}) + (64u << 20));
  EXPECT_EQ(json["peak_op"], "aten::mm");
  EXPECT_EQ(json["peak_phase"], "backward");
  EXPECT_TRUE(json["cuda"].is_null());
  EXPECT_TRUE(json["largest_that_fits"].is_null());
  expect_sums(json);
  EXPECT_EQ(said_, "");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PredictCommand, ChoosesTheSizesWhereNoneAreStated) {
  EXPECT_EQ(predict_json({"--vary", "batch", "--at", "batch=50"}, {"train={batch}"})["pool_peak_bytes"],
            peak_of({Kind::Affine, 50}));
}

TEST_F(PredictCommand, TellsAPerson) {
  const Finished end = predict_fake(kBatch128, {"print=noise", "complain=more noise", "train={batch}"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(end.out.starts_with("Peak of the process at batch=128: ")) << end.out;
  EXPECT_NE(end.out.find("aten::mm"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("\nnext: ullage run --memory "), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("\nWithout ullage run it may hold more: malloc keeps blocks that were freed\n"),
            std::string::npos)
      << end.out;
  EXPECT_NE(end.out.find("ullage-fake print=noise "), std::string::npos) << end.out;
  EXPECT_EQ(end.out.find("noise\n"), std::string::npos) << end.out;
  EXPECT_EQ(end.err, "");
}

TEST_F(PredictCommand, SaysTheLargestSizeThatFits) {
  const auto json = predict_json({"--vary", "batch", "--at", "batch=4096", "--memory", "512MiB"}, {"train={batch}"});
  EXPECT_EQ(json["fits"], false);
  ASSERT_EQ(json["largest"].size(), 1u);
  const auto& largest = json["largest"][0];
  EXPECT_EQ(json["largest_that_fits"], largest["value"]);
  EXPECT_EQ(largest["knob"], "batch");
  EXPECT_LE(largest["process_peak_bytes"], 512u << 20);
  // One more sample (3 x 64 KiB) would not fit.
  EXPECT_GT(largest["process_peak_bytes"].get<std::uint64_t>() + 3 * (1u << 16), 512u << 20);
}

TEST_F(PredictCommand, UsesWhatTheTakesHaveInCommon) {
  const auto json = predict_json({"--vary", "batch", "--at", "batch=24"}, {"train-loops={batch}"});
  EXPECT_EQ(json["law"], "bound");
  EXPECT_EQ(json["measured"], false);
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Loops, 24}));
  EXPECT_NE(said_.find("what the sizes tried have in common is used\n"), std::string::npos) << said_;
  expect_sums(json);
}

TEST_F(PredictCommand, RunsTheSizeItselfWhereSizesFollowNoLaw) {
  const auto json = predict_json(kBatch128, {"train-lawless={batch}"});
  EXPECT_EQ(json["law"], "none");
  EXPECT_EQ(json["measured"], true);
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Lawless, 128}));
  EXPECT_NE(said_.find("running it at batch 128 itself\n"), std::string::npos) << said_;
  expect_sums(json);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PredictCommand, TriesOtherSizesOnTheTargetsSideOfAThreshold) {
  const auto json = predict_json(kBatch128, {"train-sorts={batch}"});
  EXPECT_NE(said_.find("; trying batch="), std::string::npos) << said_;
  EXPECT_EQ(json["measured"], false) << said_;
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Sorts, 128}));
}

TEST_F(PredictCommand, RunsATargetBelowAllSizesItself) {
  const auto json = predict_json({"--vary", "batch", "--at", "batch=1"}, {"train={batch}"});
  EXPECT_EQ(json["measured"], true);
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Affine, 1}));
}

TEST_F(PredictCommand, SaysThatAKnobChangesNothing) {
  const Finished end = predict_fake(kBatch128, {"train-constant={batch}"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.out, "");
  EXPECT_NE(end.err.find("changes nothing"), std::string::npos) << end.err;
}

TEST_F(PredictCommand, ShowsWhyAProgramFailedAndWhichSizesMayDo) {
  const Finished end = predict_fake(kBatch128, {"print=loading", "fail-below-4={batch}", "train={batch}"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.out, "");
  EXPECT_NE(end.err.find("ullage: batch 2: the program failed with exit code 1; its last lines:\n"), std::string::npos)
      << end.err;
  EXPECT_NE(end.err.find("  | Expected more than 1 value per channel when training\n"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("--vary batch=8,12,16"), std::string::npos) << end.err;
  EXPECT_TRUE(nothing_is_left());
  EXPECT_EQ(predict_json({"--vary", "batch=8,12,16", "--at", "batch=128"},
                         {"fail-below-4={batch}", "train={batch}"})["pool_peak_bytes"],
            peak_of({Kind::Affine, 128}));
}

TEST_F(PredictCommand, SaysThatAProgramEndedBeforeASecondStep) {
  const auto json = predict_json(kBatch128, {"train-once={batch}"});
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Affine, 128, 1}));
  EXPECT_EQ(said_,
            "ullage: note: batch 2: the program ended by itself before a whole step was repeated: the peak is "
            "that of the whole run, and a longer one may need more\n");
}

TEST_F(PredictCommand, SaysThatNothingWasRecorded) {
  const Finished unreached = predict({"--vary", "n", "--at", "n=9", "--", "echo", "{n}"});
  EXPECT_EQ(unreached.exit_code, 1);
  EXPECT_NE(unreached.err.find("n 2: no process of the program loaded Ullage's runtime"), std::string::npos)
      << unreached.err;
  const Finished lost = predict_fake(kBatch128, {"lose-trace={batch}"});
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_EQ(lost.err, "ullage: batch 2: the trace was not written: the disk is full\n");
}

TEST_F(PredictCommand, RunsInAnEmptyFolderThatIsRemoved) {
  const std::string where = folder_.file("where");
  EXPECT_EQ(predict_fake(kBatch128, {"write=made-{batch}", "where=" + where, "train={batch}"}).exit_code, 0);
  std::string folder;
  std::getline(std::ifstream(where), folder);
  EXPECT_TRUE(folder.starts_with(folder_.file("tmp"))) << folder;
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PredictCommand, RunsHereWhereAsked) {
  const Words words = {"-c", "cd " + folder_.file("work") +
                                 " && exec ../ullage predict --here --vary batch --at batch=9 -- "
                                 "../ullage-fake read=data write=made-{batch} train={batch}"};
  std::ofstream(folder_.path() / "work" / "data") << "x\n";
  Words all = {"/bin/sh"};
  all.insert(all.end(), words.begin(), words.end());
  const Finished end = Process(all, {{"TMPDIR", folder_.file("tmp")}}).finish();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(fs::exists(folder_.path() / "work" / "made-4"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PredictCommand, OffersToRunHereWhereARelativeFileIsNotFound) {
  std::ofstream(folder_.path() / "work" / "data") << "x\n";
  const Finished end =
      Process({"/bin/sh", "-c",
               "cd " + folder_.file("work") +
                   " && exec ../ullage predict --vary batch --at batch=9 -- ../ullage-fake read=data train={batch}"})
          .finish();
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.err.find("  | data: no such file\n"), std::string::npos) << end.err;
  EXPECT_NE(
      end.err.find("ullage: it ran in an empty folder, in which data is not found: write whole paths, or give --here"),
      std::string::npos)
      << end.err;
}

TEST_F(PredictCommand, FindsARelativeScriptOfAnInterpreter) {
  std::ofstream(folder_.path() / "work" / "train.sh") << "exec " << folder_.file("ullage-fake") << " train=$1\n";
  const Finished end = Process({"/bin/sh", "-c",
                                "cd " + folder_.file("work") +
                                    " && exec ../ullage predict --vary batch --at batch=9 -- sh -e train.sh {batch}"})
                           .finish();
  EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST_F(PredictCommand, KeepsTheTakesAndPredictsFromThemAgain) {
  const std::string file = folder_.file("takes.ullage");
  auto keep = kBatch128;
  keep.insert(keep.end(), {"--keep", file});
  const auto first = predict_json(keep, {"train={batch}"});
  EXPECT_EQ(said_, "ullage: wrote " + file + "\n");
  const Finished again = predict({"--json", file});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out), first);
  const Finished other = predict({file, "--at", "batch=50", "--json"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(nlohmann::json::parse(other.out)["pool_peak_bytes"], peak_of({Kind::Affine, 50}));
}

TEST_F(PredictCommand, SaysWhatIsWrongWithAFileOrItsTarget) {
  const std::string file = folder_.file("takes.ullage");
  auto keep = kBatch128;
  keep.insert(keep.end(), {"--keep", file});
  predict_json(keep, {"train={batch}"});
  EXPECT_EQ(predict({file, "--at", "batch=1"}).exit_code, 2);
  const Finished unknown = predict({file, "--at", "size=64"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("--at: size is not a knob of the takes; they have batch"), std::string::npos);
  EXPECT_EQ(predict({folder_.file("none.ullage")}).exit_code, 3);
  fs::resize_file(file, fs::file_size(file) - 1);
  const Finished damaged = predict({file});
  EXPECT_EQ(damaged.exit_code, 3);
  EXPECT_NE(damaged.err.find(file), std::string::npos) << damaged.err;
}

TEST_F(PredictCommand, TellsTheFiguresOfARecordedRun) {
  const std::string file = folder_.file("run.ullage");
  EXPECT_EQ(Process({folder_.file("ullage"), "run", "--quiet", "--record", file, "fake", "train=7"}).finish().exit_code,
            0);
  const Finished end = predict({"--json", file});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto json = nlohmann::json::parse(end.out);
  EXPECT_EQ(json["measured"], true);
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Affine, 7}));
}

TEST_F(PredictCommand, CountsTheWorkersOfTheProgram) {
  const Words words = {"worker=64MiB", "eat=128MiB", "nap=400", "train={batch}"};
  const auto in = [&](std::uint64_t memory) {
    Words options = kBatch128;
    options.insert(options.end(), {"--memory", std::to_string(memory)});
    return predict_json(options, words);
  };
  const auto first = in(std::uint64_t{8} << 30);
  const std::uint64_t process = first["process_peak_bytes"], others = first["others_bytes"];
  EXPECT_GE(others, 60u << 20);
  EXPECT_LE(others, 100u << 20);  // a sanitizer takes more
  EXPECT_EQ(first["fits"], true);
  const auto little = in(process + others / 2);
  EXPECT_EQ(little["fits"], false);
  EXPECT_LT(little["largest_that_fits"], 128);
  Words options = kBatch128;
  options.insert(options.end(), {"--", folder_.file("ullage-fake")});
  options.insert(options.end(), words.begin(), words.end());
  const std::string said = predict(options).out;
  EXPECT_NE(said.find("Other processes, such as a data loader's workers or other ranks, "), std::string::npos) << said;
}

// As two ranks do.
TEST_F(PredictCommand, CountsOtherProcessesThatGrowWithTheKnob) {
  const auto json = predict_json({"--vary", "batch=10,20,30", "--at", "batch=100"},
                                 {"worker={batch}MiB", "eat=32MiB", "nap=400", "train={batch}"});
  EXPECT_GE(json["others_bytes"], 90u << 20);
  EXPECT_LE(json["others_bytes"], 170u << 20);  // a sanitizer takes more
}

TEST_F(PredictCommand, AShippedProgramTriesTheSizesItself) {
  const Finished end = predict({"--json", "fake", "--side=8", "rehearse=128"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto json = nlohmann::json::parse(end.out);
  EXPECT_EQ(json["at"]["batch"], 128);
  EXPECT_EQ(json["pool_peak_bytes"], peak_of({Kind::Affine, 128}));
  EXPECT_EQ(json["law"], "exact");
}

TEST_F(PredictCommand, LooksForTheLargestValueOfAnOptionThatNoLawGoesOver) {
  // The process's peak at each side, as a prediction for that side gives it.
  std::map<std::int64_t, std::int64_t> need;
  for (const std::int64_t side : {8, 16, 32, 64}) {
    const Finished end = predict({"--json", "fake", "--side=" + std::to_string(side), "rehearse=64"});
    ASSERT_EQ(end.exit_code, 0) << end.err;
    need[side] = nlohmann::json::parse(end.out)["process_peak_bytes"];
  }
  const auto largest = [&](std::int64_t memory, std::int64_t asked) {
    const Finished end = predict(
        {"--json", "--memory", std::to_string(memory), "fake", "--side=" + std::to_string(asked), "rehearse=64"});
    const auto json = nlohmann::json::parse(end.out);
    for (const auto& one : json["largest"]) {
      if (one["knob"] == "side") return std::pair<std::int64_t, std::int64_t>(one["value"], one["process_peak_bytes"]);
    }
    return std::pair<std::int64_t, std::int64_t>(-1, -1);
  };
  EXPECT_EQ(largest(need[32], 8), std::pair(std::int64_t{32}, need[32])) << "upwards, and not a byte short";
  EXPECT_EQ(largest(need[32] - 1, 8), std::pair(std::int64_t{16}, need[16]));
  EXPECT_EQ(largest(need[16], 64), std::pair(std::int64_t{16}, need[16])) << "downwards";
  EXPECT_EQ(largest(need[64] + 1, 16), std::pair(std::int64_t{64}, need[64]));
}

TEST_F(PredictCommand, BisectsNumbersWhicheverWayTheirBytesGo) {
  const auto asked = [&](const std::string& memory, const std::string& option) {
    Words words = {"--json", "fake", option, "rehearse=64"};
    if (!memory.empty()) words.insert(words.begin() + 1, {"--memory", memory});
    const Finished end = predict(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return nlohmann::json::parse(end.out);
  };
  const auto need = [&](const std::string& option) {
    return asked("", option)["process_peak_bytes"].get<std::uint64_t>();
  };
  const auto largest = [&](std::uint64_t memory, const std::string& option) {
    const auto all = asked(std::to_string(memory), option)["largest"];
    const std::string name = option.substr(2, option.find('=') - 2);
    for (const auto& one : all) {
      if (one["knob"] == name) return one;
    }
    return nlohmann::json();
  };
  const std::uint64_t rows = need("--rows=23"), parts = need("--parts=41");
  const nlohmann::json row = {
      {"knob", "rows"}, {"value", 23}, {"process_peak_bytes", rows}, {"law", "exact"}, {"needs", "--allow fewer"}};
  for (const char* option : {"--rows=8", "--rows=23", "--rows=64"}) EXPECT_EQ(largest(rows, option), row) << option;
  EXPECT_EQ(largest(rows - 1, "--rows=8")["value"], 22);
  const nlohmann::json part = {
      {"knob", "parts"}, {"value", 41}, {"process_peak_bytes", parts}, {"law", "exact"}, {"smallest", true}};
  for (const char* option : {"--parts=1", "--parts=41", "--parts=64"})
    EXPECT_EQ(largest(parts, option), part) << option;
  EXPECT_EQ(largest(parts - 1, "--parts=1")["value"], 42);
  const Finished end = predict({"--memory", std::to_string(parts), "fake", "--parts=64", "rehearse=64"});
  EXPECT_NE(end.out.find("the smallest parts"), std::string::npos) << end.out;
}

TEST_F(PredictCommand, TriesOtherValuesOfAKnobWithTheTakesItHas) {
  const std::string starts = folder_.file("starts");
  const auto asked = [&](const std::string& memory, std::int64_t batch) {
    Words words = {"--json", "fake", "count-start=" + starts, "--batch=" + std::to_string(batch), "rehearse=0"};
    if (!memory.empty()) words.insert(words.begin() + 1, {"--memory", memory});
    fs::remove(starts);
    const Finished end = predict(words);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return nlohmann::json::parse(end.out);
  };
  const auto largest = [&](std::uint64_t memory, std::int64_t batch) {
    const auto all = asked(std::to_string(memory), batch)["largest"];
    for (const auto& one : all) {
      if (one["knob"] == "batch") return one;
    }
    return nlohmann::json();
  };
  const auto need = [&](std::int64_t batch) { return asked("", batch)["process_peak_bytes"].get<std::uint64_t>(); };
  const std::uint64_t of_23 = need(23), of_1 = need(1);
  EXPECT_EQ(fs::file_size(starts), 1U);
  for (const std::int64_t from : {8, 23}) {
    EXPECT_EQ(largest(of_23, from),
              nlohmann::json({{"knob", "batch"}, {"value", 23}, {"process_peak_bytes", of_23}, {"law", "exact"}}));
    EXPECT_LE(fs::file_size(starts), 5U) << "the program, another batch, and at most three sides";
  }
  // A batch of 1 is below the sizes that the program chooses, so it is run.
  EXPECT_EQ(largest(of_1, 8)["value"], 1);
}

TEST_F(PredictCommand, NamesWhatAnOptionNeedsBesideIt) {
  const auto said = [&](const std::string& option) {
    const Finished end = predict({"--memory", "8GiB", "fake", option, "rehearse=64"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return end.out;
  };
  const std::string rows = said("--rows=64");
  EXPECT_NE(rows.find("needs --allow fewer)"), std::string::npos) << rows;
  EXPECT_NE(rows.find(" fake --rows=64 rehearse=64 --allow fewer\n"), std::string::npos) << rows;
  const std::string zeros(80, '0');
  const std::string long_one = said("--rows=" + zeros + "64");
  EXPECT_NE(long_one.find("64 rehearse=64 --allow fewer\n"), std::string::npos) << long_one;
  const std::string parts = said("--parts=64");
  EXPECT_EQ(parts.find("--allow"), std::string::npos) << parts;
}

TEST_F(PredictCommand, TellsTheLargestSquareOfAPicture) {
  const auto predicted = [&](const std::string& memory, const std::string& deed) {
    const Finished end = predict({"--json", "--memory", memory, "fake", deed});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    said_ = end.err;
    return nlohmann::json::parse(end.out);
  };
  const auto small = predicted("1GiB", "rehearse-picture=896x640");
  EXPECT_EQ(small["pool_peak_bytes"], peak_of({Kind::Affine, 896 * 640 / 256}));
  EXPECT_EQ(small["largest_square"]["sides"], (nlohmann::json{"width", "height"}));
  const auto at_784 = predicted("1GiB", "rehearse-picture=784x784");
  const auto need = at_784["process_peak_bytes"].get<std::uint64_t>();
  EXPECT_EQ(
      predicted(std::to_string(need), "rehearse-picture=896x640")["largest_square"],
      (nlohmann::json{{"sides", {"width", "height"}}, {"value", 784}, {"process_peak_bytes", need}, {"law", "exact"}}));
  EXPECT_EQ(predicted(std::to_string(need - 1), "rehearse-picture=896x640")["largest_square"]["value"], 768);
  EXPECT_EQ(predicted("32MiB", "rehearse-picture=896x640")["largest_square"]["value"], 0);
}

TEST_F(PredictCommand, KeepsTheLargestSquareWhereTheSizeItselfIsRun) {
  const auto predicted = [&](const std::string& memory) {
    const Finished end = predict({"--json", "--memory", memory, "fake", "rehearse-convolutions=320x320"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    said_ = end.err;
    return nlohmann::json::parse(end.out);
  };
  const auto ample = predicted("1GiB");
  EXPECT_NE(said_.find("running it at width 320, height 320 itself"), std::string::npos) << said_;
  EXPECT_EQ(ample["measured"], true);
  EXPECT_GT(ample["largest_square"]["value"], 320);
  const auto need = ample["process_peak_bytes"].get<std::uint64_t>();
  const auto just = predicted(std::to_string(need));
  EXPECT_EQ(just["largest_square"]["value"], 320) << "what was run and fits, whatever a bound says";
  EXPECT_EQ(just["largest_square"]["process_peak_bytes"], need);
  EXPECT_EQ(just["largest"][0]["value"], 320);
  EXPECT_LT(predicted(std::to_string(need - 1))["largest_square"]["value"], 320);
}

TEST_F(PredictCommand, SaysThatTheKernelOrASignalEndedIt) {
  const Finished end = predict_fake(kBatch128, {"print={batch}", "kill=9"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.err.find("ullage: batch 2: the program was killed by signal 9"), std::string::npos) << end.err;
}

TEST_F(PredictCommand, CtrlCEndsTheProgramAndRemovesItsFolder) {
  Process process({folder_.file("ullage"), "predict", "--vary", "batch", "--at", "batch=9", "--",
                   folder_.file("ullage-fake"), "write=" + folder_.file("begun"), "wait", "train={batch}"},
                  {{"TMPDIR", folder_.file("tmp")}});
  while (!fs::exists(folder_.file("begun"))) usleep(10'000);
  EXPECT_FALSE(nothing_is_left());
  process.send(SIGINT);
  const Finished end = process.finish();
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace ullage::cli
