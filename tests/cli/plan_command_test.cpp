// SPDX-License-Identifier: Apache-2.0
// Runs `ullage plan` as a person does, on a small recorded training: exit codes, outputs, and figures that add up.
#include "small_training.h"
#include "ullage/plan/file/plan_file.h"
#include "ullage/store/budget.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

class PlanCommand : public testing::Test {
 protected:
  PlanCommand() { put("run.ullage", bytes_of(small_file())); }

  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(folder_.file(name), std::ios::binary) << text;
    return folder_.file(name);
  }
  // States the rate, so that two runs make the same plan, and a small effort, because the program is small.
  Finished plan(Words words) {
    words.insert(words.begin(), {folder_.file("ullage"), "plan", "--rate", "1GB", "--effort", "1"});
    return Process(words).finish();
  }
  Finished plan_file(Words options) {
    options.push_back(file());
    return plan(options);
  }
  nlohmann::json json_of(Words options, int exit_code = 0) {
    options.push_back("--json");
    const Finished end = plan_file(options);
    EXPECT_EQ(end.exit_code, exit_code) << end.err;
    return nlohmann::json::parse(end.out, nullptr, false);
  }
  std::string file() const { return folder_.file("run.ullage"); }
  std::string text_of(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_.file(name)).rdbuf();
    return text.str();
  }

  ShippedFolder folder_;
};

std::uint64_t beside(const nlohmann::json& json) {
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : json["beside"].items()) sum += bytes.get<std::uint64_t>();
  return sum;
}

// Checks what must hold for every answer.
void expect_sound(const nlohmann::json& json) {
  EXPECT_EQ(json["format"], "ullage-plan");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["budget_bytes"].get<std::uint64_t>() + beside(json), json["memory_bytes"]);
  EXPECT_EQ(json["beside"]["margin_bytes"], store::Budget::kMargin.count);
  EXPECT_TRUE(plan::read_plan(json.dump(), "stdout"));
}

TEST_F(PlanCommand, SaysThatAllFitsWhereItDoes) {
  const auto json = json_of({"--memory", "1GiB"});
  expect_sound(json);
  EXPECT_EQ(json["outcome"], "fits");
  EXPECT_EQ(json["overhead_seconds"], 0);
  EXPECT_EQ(json["levers"].size(), 0u);
  EXPECT_EQ(json["schedule"].size(), 0u);
  const Finished end = plan_file({"--memory", "1GiB"});
  EXPECT_TRUE(end.out.starts_with("Fits 1.00 GiB as it is")) << end.out;
  EXPECT_TRUE(end.out.ends_with("next: ullage run --memory 1GiB -- ./train 4\n")) << end.out;
  EXPECT_EQ(end.err, "");
}

TEST_F(PlanCommand, PlansForLess) {
  const auto plain = json_of({"--memory", "1GiB"});
  const std::uint64_t less = plain["plain_peak_bytes"].get<std::uint64_t>() + beside(plain) - (20u << 20);
  const auto json = json_of({"--memory", std::to_string(less)});
  expect_sound(json);
  EXPECT_EQ(json["outcome"], "plan");
  EXPECT_EQ(json["memory_bytes"], less);
  EXPECT_EQ(json["plain_peak_bytes"], plain["plain_peak_bytes"]);
  EXPECT_LE(json["peak_bytes"], json["budget_bytes"]);
  EXPECT_GT(json["levers"].size(), 0u);
  EXPECT_GT(json["schedule"].size(), 0u);
  EXPECT_EQ(json["torch"], "2.13.0");
  EXPECT_EQ(json["command"], nlohmann::json({"./train", "4"}));
  EXPECT_EQ(json["seed"], 1);
  // With the seed and the rate stated, a second run gives the same answer.
  EXPECT_EQ(json_of({"--memory", std::to_string(less)}), json);
}

TEST_F(PlanCommand, TakesTheRatesOfBothDirections) {
  const auto plain = json_of({"--memory", "1GiB"});
  const std::string less = std::to_string(plain["plain_peak_bytes"].get<std::uint64_t>() + beside(plain) - (20u << 20));
  const auto added = [&](const std::string& rate) {
    const Finished end = Process({folder_.file("ullage"), "plan", "--rate", rate, "--effort", "1", "--levers", "spill",
                                  "--memory", less, "--json", file()})
                             .finish();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return nlohmann::json::parse(end.out, nullptr, false)["overhead_seconds"].get<double>();
  };
  const double even = added("1GB");
  EXPECT_EQ(added("1GB,1GB"), even);
  EXPECT_LT(added("4GB,1GB"), even);
  EXPECT_LT(added("1GB,4GB"), even);
  EXPECT_GT(added("4GB,1GB"), added("4GB"));
  EXPECT_GT(added("1GB,4GB"), added("4GB"));
  const Finished three =
      Process({folder_.file("ullage"), "plan", "--rate", "1GB,2GB,3GB", "--memory", less, file()}).finish();
  EXPECT_EQ(three.exit_code, 2);
  EXPECT_EQ(three.err,
            "ullage: --rate: '1GB,2GB,3GB' has 3 rates; give one for both directions, or two: out, back\n"
            "ullage: see 'ullage help plan'\n");
}

TEST_F(PlanCommand, ComparesRecordingsThatChangeResults) {
  const auto of = [&](const std::string& name, std::uint64_t batch, std::vector<trace::ResultChange> changes) {
    SmallTraining program(batch);
    program.steps(3);
    trace::TraceFile file = file_of({program.take()});
    file.changes = std::move(changes);
    return put(name, bytes_of(file));
  };
  const std::string half = of("half.ullage", 2, {{"--allow bf16", "rounding"}});
  const std::string micro = of("micro.ullage", 1, {{"--micro-batch 1", "different"}});
  const auto compared = [&](const std::string& allow, const std::string& memory, int exit_code = 0) {
    const Finished end = plan({"--allow", allow, "--memory", memory, "--json", file(), half, micro});
    EXPECT_EQ(end.exit_code, exit_code) << end.err;
    return nlohmann::json::parse(end.out, nullptr, false);
  };
  // A recording that fits as it is is chosen, even if the others are much faster.
  const auto plain = compared("rounding,different", "1GiB");
  EXPECT_EQ(plain["class"], "bit-equal");
  ASSERT_EQ(plain["ways"].size(), 3u);
  EXPECT_EQ(plain["ways"][0]["chosen"], true);
  EXPECT_EQ(plain["ways"][1]["changes"], nlohmann::json({"--allow bf16"}));
  EXPECT_EQ(plain["ways"][1]["class"], "rounding");

  // If the plain program needs a plan, an allowed recording that takes less time is chosen.
  const std::uint64_t less = plain["plain_peak_bytes"].get<std::uint64_t>() + beside(plain) - (20u << 20);
  const auto json = compared("rounding", std::to_string(less));
  expect_sound(json);
  EXPECT_EQ(json["class"], "rounding");
  EXPECT_EQ(json["ways"][0]["outcome"], "plan");
  EXPECT_EQ(json["ways"][0]["allowed"], true);
  EXPECT_EQ(json["ways"][1]["chosen"], true);
  EXPECT_EQ(json["ways"][2]["allowed"], false);
  EXPECT_EQ(json["ways"][2]["chosen"], false);
  EXPECT_EQ(json["plain_peak_bytes"], json["ways"][1]["plain_peak_bytes"]);

  const Finished end = plan({"--allow", "rounding", "--memory", std::to_string(less), file(), half, micro});
  EXPECT_TRUE(end.out.starts_with("Chosen: --allow bf16 (rounding): the cheapest that fits")) << end.out;
  EXPECT_NE(end.out.find("different not allowed"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("next: ullage run --allow bf16 --memory "), std::string::npos) << end.out;

  const auto none = compared("rounding", "130MiB", 4);
  EXPECT_FALSE(none.contains("class"));
  const Finished one = plan({"--allow", "rounding", "--memory", "1GiB", file()});
  EXPECT_NE(one.err.find("--allow compares recordings, and there is one"), std::string::npos) << one.err;
  EXPECT_TRUE(one.out.starts_with("Chosen: the program as it is: it fits, so no result changes\n")) << one.out;
}

TEST_F(PlanCommand, RefusesWordsThatAreNoClasses) {
  for (const auto& [words, said] : std::vector<std::pair<Words, std::string>>{
           {{"--allow", "roundin", "--memory", "1GiB"}, "'roundin' is no class of results, did you mean 'rounding'?"},
           {{"--allow", "rounding,", "--memory", "1GiB"}, "a word is missing in 'rounding,'"},
           {{"--allow", "rounding", "--curve"}, "--allow: needs a memory to choose for: add --memory SIZE"}}) {
    const Finished end = plan_file(words);
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_NE(end.err.find(said), std::string::npos) << end.err;
  }
}

TEST_F(PlanCommand, RefusesWhatNoPlanKeepsToAndNamesTheLeast) {
  const auto json = json_of({"--memory", "170MiB"}, 4);
  EXPECT_EQ(json["outcome"], "infeasible");
  EXPECT_EQ(json["schedule"].size(), 0u);
  const std::string out = folder_.file("plan.json");
  const Finished end = plan_file({"--memory", "170MiB", "--out", out});
  EXPECT_EQ(end.exit_code, 4);
  EXPECT_TRUE(end.out.starts_with("DOES NOT FIT 170.00 MiB: the least found with these levers is --memory "))
      << end.out;
  EXPECT_FALSE(fs::exists(out)) << "there is no plan to keep";
  // The least budget that it names must serve.
  const std::uint64_t least = json["least_budget_bytes"].get<std::uint64_t>() + beside(json);
  const std::uint64_t rounded = (least + (1u << 20) - 1) >> 20;
  EXPECT_NE(end.out.find("next: ullage plan --memory " + std::to_string(rounded) + "MiB " + file()), std::string::npos)
      << end.out;
}

TEST_F(PlanCommand, TheLeastThatItNamesCanBeHad) {
  const auto json = json_of({"--memory", "170MiB"}, 4);
  const std::uint64_t least = json["least_budget_bytes"].get<std::uint64_t>() + beside(json);
  expect_sound(json_of({"--memory", std::to_string((least + (1u << 20) - 1) >> 20) + "MiB"}));
}

TEST_F(PlanCommand, RefusesAMemoryThatHasNoRoomForTensorsAtAll) {
  const auto json = json_of({"--memory", "10MiB"}, 4);
  EXPECT_EQ(json["outcome"], "infeasible");
  EXPECT_EQ(json["memory_bytes"], 10u << 20);
}

TEST_F(PlanCommand, KeepsThePlanInAFileThatARunCanBegin) {
  const std::string out = folder_.file("plan.json"), page = folder_.file("page.html");
  const Finished end = plan_file({"--memory", "300MiB", "--out", out, "--html", page});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.err, "ullage: wrote " + out + "\nullage: wrote " + page + "\n");
  EXPECT_TRUE(end.out.ends_with("next: ullage run --memory 300MiB --plan " + out + " -- ./train 4\n")) << end.out;
  const Result<plan::PlanFile> read = plan::read_plan(text_of("plan.json"), out);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->memory, 300_MiB);
  EXPECT_GT(read->sites.ops.size(), 10u);
  EXPECT_NE(text_of("page.html").find("class=\"plan-timeline\""), std::string::npos);
  EXPECT_EQ(Process({folder_.file("ullage"), "run", "--quiet", "--memory", "300MiB", "--plan", out, "fake", "plan"})
                .finish()
                .out,
            out + " 0\n");
}

TEST_F(PlanCommand, PlansForTheCardThatWasRecorded) {
  trace::TraceFile file = small_file();
  const auto plain = json_of({"--memory", "1GiB"});
  file.device = "cuda:1", file.takes.back().process.outside_peak = 64_MiB;
  put("run.ullage", bytes_of(file));
  const auto json = json_of({"--memory", "1GiB"});
  expect_sound(json);
  EXPECT_EQ(json["device"], "cuda:1");
  EXPECT_EQ(plain["device"], "cpu");
  EXPECT_EQ(json["beside"]["outside_bytes"], (64_MiB).count) << "as recorded: what torch holds is not on the card";
  const Finished end = plan_file({"--memory", "1GiB"});
  EXPECT_TRUE(end.out.ends_with("next: ullage run --device cuda:1 --memory 1GiB -- ./train 4\n")) << end.out;
  const Finished machine = plan_file({"--memory", "auto"});
  EXPECT_EQ(machine.exit_code, 2);
  EXPECT_NE(machine.err.find("--memory: auto is what this machine gives; state the bytes of cuda:1"), std::string::npos)
      << machine.err;
}

TEST_F(PlanCommand, UsesTheNamedLeversAlone) {
  const auto json = json_of({"--memory", "300MiB", "--levers", "recompute"});
  ASSERT_EQ(json["outcome"], "plan");
  for (const auto& use : json["levers"]) EXPECT_EQ(use["lever"], "recompute");
  const Words none = {"batch-norm", "hold", "spill", "restore", "write_ahead", "read_ahead"};
  for (const auto& action : json["schedule"]) {
    EXPECT_EQ(std::count(none.begin(), none.end(), action["do"].get<std::string>()), 0) << action;
  }
  EXPECT_EQ(json["away"].size(), 0u);
  EXPECT_EQ(json_of({"--memory", "300MiB", "--levers", "hold"}, 4)["outcome"], "infeasible") << "frees nothing alone";
}

TEST_F(PlanCommand, PlansTheNamedStep) {
  EXPECT_EQ(json_of({"--memory", "300MiB", "--step", "2"})["outcome"], "plan");
  const Finished end = plan_file({"--memory", "300MiB", "--step", "99"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(end.err.ends_with("ullage: see 'ullage help plan'\n")) << end.err;
}

TEST_F(PlanCommand, TellsTheCurveAloneOrBesideAPlan) {
  const auto alone = json_of({"--curve"});
  EXPECT_EQ(alone["format"], "ullage-plan-curve");
  ASSERT_GT(alone["curve"].size(), 2u);
  double before = 1e9;
  std::uint64_t budget = 0;
  for (const auto& point : alone["curve"]) {
    EXPECT_EQ(
        point["budget_bytes"].get<std::uint64_t>() + point["kept_free_bytes"].get<std::uint64_t>() + beside(alone),
        point["memory_bytes"]);
    EXPECT_GT(point["budget_bytes"].get<std::uint64_t>(), budget);
    budget = point["budget_bytes"];
    if (point["outcome"] == "infeasible") {
      EXPECT_EQ(before, 1e9) << "below all that have a plan";
      continue;
    }
    EXPECT_LE(point["overhead_seconds"].get<double>(), before) << "more bytes never cost more";
    before = point["overhead_seconds"];
  }
  const auto both = json_of({"--curve", "--memory", "300MiB"});
  expect_sound(both);
  const auto asked = std::find_if(both["curve"].begin(), both["curve"].end(),
                                  [&](const auto& point) { return point["budget_bytes"] == both["budget_bytes"]; });
  ASSERT_NE(asked, both["curve"].end());
  for (const char* field : {"peak_bytes", "overhead_seconds", "lower_bound_seconds"}) {
    EXPECT_EQ((*asked)[field], both[field]) << field;
  }
  const Finished end = plan_file({"--curve"});
  EXPECT_TRUE(end.out.starts_with("Budget against time")) << end.out;
}

TEST_F(PlanCommand, ProposesAMemoryBetweenThoseOfTheCurve) {
  const auto json = json_of({"--curve"});
  const Finished end = plan_file({"--curve"});
  const std::string begin = "next: ullage plan --memory ";
  const std::size_t at = end.out.rfind(begin);
  ASSERT_NE(at, std::string::npos) << end.out;
  const std::uint64_t mib = std::stoull(end.out.substr(at + begin.size()));
  EXPECT_LT(mib << 20, json["curve"].back()["memory_bytes"].get<std::uint64_t>())
      << "what needs no plan is no proposal";
  EXPECT_GT(mib << 20, json["curve"].front()["memory_bytes"].get<std::uint64_t>());
}

TEST_F(PlanCommand, ProposesNoRunWhereTheCommandIsNotKnown) {
  trace::TraceFile file = small_file();
  file.command.clear();
  const std::string name = put("nameless.ullage", bytes_of(file)), out = folder_.file("plan.json");
  EXPECT_EQ(plan({name, "--memory", "1GiB"}).out.find("next:"), std::string::npos);
  EXPECT_EQ(plan({name, "--memory", "300MiB", "--out", out}).out.find("next:"), std::string::npos);
  EXPECT_NE(plan({name, "--memory", "300MiB"}).out.find("next: ullage plan"), std::string::npos);
}

TEST_F(PlanCommand, MeasuresTheRatesWhereNoneAreStated) {
  const Finished end =
      Process({folder_.file("ullage"), "plan", file(), "--memory", "300MiB", "--effort", "1"}).finish();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.err, "");
}

TEST_F(PlanCommand, OfWhatHoldsNoStepSaysSo) {
  SmallTraining program(4);
  const std::string early = put("early.ullage", bytes_of(file_of({program.take(trace::Take::End::Program)})));
  const Finished end = plan({early, "--memory", "300MiB"});
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(end.err.starts_with("ullage: " + early + ": ")) << end.err;
  EXPECT_EQ(plan({put("none.ullage", bytes_of(file_of({}))), "--memory", "300MiB"}).exit_code, 3);
}

TEST_F(PlanCommand, LeavesTheInputAlone) {
  const std::string before = text_of("run.ullage");
  const Finished end = plan_file({"--memory", "300MiB", "--out", file()});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_NE(end.err.find("--out: the plan would replace the trace"), std::string::npos) << end.err;
  EXPECT_EQ(text_of("run.ullage"), before);
  fs::resize_file(file(), fs::file_size(file()) - 1);
  EXPECT_EQ(plan_file({"--memory", "300MiB"}).exit_code, 3);
}

}  // namespace
}  // namespace ullage::cli
