// SPDX-License-Identifier: Apache-2.0
// A plan file is read back as it was written. A file that was edited, cut off or made up is refused, and the error says
// where.
#include "plan/sample_plan.h"
#include "ullage/plan/file/plan_file_words.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <sstream>
#include <string>

namespace ullage::plan {
namespace {

using Json = nlohmann::json;

std::string text_of(const PlanFile& file) {
  std::ostringstream out;
  write_plan(file, out);
  return out.str();
}

void expect_same(const PlanFile& a, const PlanFile& b) {
  EXPECT_EQ(a.sites, b.sites);
  EXPECT_EQ(a.plan.schedule, b.plan.schedule);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.torch, b.torch);
  EXPECT_EQ(a.command, b.command);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_EQ(a.plan.outcome, b.plan.outcome);
  EXPECT_EQ(a.plan.bound, b.plan.bound);
  EXPECT_EQ(a.plan.least_set_by, b.plan.least_set_by);
  EXPECT_EQ(a.plan.levers.size(), b.plan.levers.size());
  EXPECT_EQ(text_of(a), text_of(b));
}

TEST(PlanFile, ComesBackAsItWasWritten) {
  const PlanFile file = sample_plan_file();
  const Result<PlanFile> again = read_plan(text_of(file), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  expect_same(*again, file);
}

TEST(PlanFile, ComesBackWhereNothingIsNeededOrNothingHelps) {
  for (const Plan::Outcome outcome : {Plan::Outcome::Fits, Plan::Outcome::Infeasible}) {
    PlanFile file = sample_plan_file();
    file.plan.outcome = outcome;
    file.plan.schedule = {};
    file.plan.levers = {};
    file.plan.bound.reset();
    file.memory = Bytes{};
    file.plan.budget = outcome == Plan::Outcome::Fits ? file.plan.plain_peak : 1_MiB;
    const Result<PlanFile> again = read_plan(text_of(file), "plan.json");
    ASSERT_TRUE(again) << again.error().text();
    expect_same(*again, file);
  }
}

TEST(PlanFile, KnowsWhoseBytesItIsOf) {
  PlanFile file = sample_plan_file();
  file.device = "cuda:1";
  const Result<PlanFile> again = read_plan(text_of(file), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  expect_same(*again, file);
  // Plan files from before the field existed are for the CPU.
  Json json = Json::parse(text_of(file));
  json.erase("device");
  const Result<PlanFile> older = read_plan(json.dump(), "plan.json");
  ASSERT_TRUE(older) << older.error().text();
  EXPECT_EQ(older->device, "cpu");
}

TEST(PlanFile, HasTheFieldsOfTheContract) {
  const Json json = Json::parse(text_of(sample_plan_file()));
  EXPECT_EQ(json["format"], "ullage-plan");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["outcome"], "plan");
  EXPECT_EQ(json["budget_bytes"], (150_MiB).count);
  EXPECT_EQ(json["peak_bytes"], (136_MiB + 512_B).count);
  EXPECT_EQ(json["plain_peak_bytes"], (168_MiB + 512_B).count);
  EXPECT_EQ(json["step_seconds"], 0.85);
  EXPECT_EQ(json["overhead_seconds"], 0.0425);
  EXPECT_EQ(json["lower_bound_seconds"], 0.034);
  EXPECT_EQ(json["least_budget_bytes"], (120_MiB).count);
  EXPECT_EQ(json["levers"][2],
            Json({{"site", "momentum"}, {"lever", "state"}, {"bytes", (16_MiB).count}, {"seconds", 0.0175}}));
}

TEST(PlanFile, SitesHoldWhatARunNeedsOfTheStep) {
  const Step step = sample_step();
  const Sites sites = sites_of(step);
  ASSERT_EQ(sites.ops.size(), 5u);
  EXPECT_EQ(sites.values, 11u);
  EXPECT_EQ(sites.ops[OpIndex{1}].key, step.ops[OpIndex{1}].key);
  EXPECT_EQ(sites.ops[OpIndex{1}].batch_norm_reads, (std::vector<ValueIndex>{{3}, {5}, {6}}));
  EXPECT_EQ(sites.ops[OpIndex{2}].overwrites, 1u);
  EXPECT_EQ(sites.ops[OpIndex{3}].unread, (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(sites.ops[OpIndex{3}].reads, step.ops[OpIndex{3}].reads);
  EXPECT_EQ(sites.ops[OpIndex{4}].makes, step.ops[OpIndex{4}].makes);
  // Weight and momentum: the value that a step leaves is the one that the next step begins with.
  EXPECT_EQ(sites.carried, (std::vector<std::pair<ValueIndex, ValueIndex>>{{{8}, {0}}, {{9}, {1}}}));
}

TEST(PlanFile, SaysWhichOpsTouchNothingThatCanMove) {
  PlanFile file = sample_plan_file();
  Step step = sample_step();
  const StepOp& op = step.ops[OpIndex{1}];
  const auto storage_of = [&](ValueIndex value) -> StepStorage& { return step.storages[step.values[value].storage]; };
  EXPECT_FALSE(sites_of(step).ops[OpIndex{1}].small);
  for (const ValueIndex value : op.reads) storage_of(value).bytes = 63_KiB;
  for (const ValueIndex value : op.makes) storage_of(value).bytes = 63_KiB;
  file.sites = sites_of(step);
  EXPECT_TRUE(file.sites.ops[OpIndex{1}].small);
  const Result<PlanFile> again = read_plan(text_of(file), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  expect_same(*again, file);
  storage_of(op.makes.front()).bytes = 64_KiB;
  EXPECT_FALSE(sites_of(step).ops[OpIndex{1}].small);
}

TEST(PlanFile, CountsTheValuesThatItNames) {
  PlanFile file = sample_plan_file();
  file.sites.values = 1'000'000'000;  // the file names no value above 10
  EXPECT_EQ(Json::parse(text_of(file))["values"], 11);
  file.plan.schedule.actions.push_back({Action::What::Spill, {4}, true, {20}});
  EXPECT_EQ(Json::parse(text_of(file))["values"], 21);
}

TEST(PlanFile, TakesAStorageThatTheStepDoesNotWrite) {
  Json json = Json::parse(text_of(sample_plan_file()));
  json["carried"][0] = {0, 0};
  EXPECT_TRUE(read_plan(json.dump(), "plan.json"));
}

TEST(PlanFile, TakesTextsOfAnyBytes) {
  PlanFile file = sample_plan_file();
  file.plan.levers[0].site = "a \xff\x01 \"b\"\n";
  file.command = {"\xc3\x28"};
  const Result<PlanFile> again = read_plan(text_of(file), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->plan.levers[0].site, "a \xef\xbf\xbd\x01 \"b\"\n");
}

TEST(PlanFile, IsRefusedWhereItIsCutAnywhere) {
  const std::string text = text_of(sample_plan_file());
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {  // only a line end follows the last bracket
    const Result<PlanFile> read = read_plan(text.substr(0, length), "plan.json");
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().kind, Error::Kind::BadFile);
  }
}

struct Damage {
  const char* name;
  std::function<void(Json&)> edit;
  const char* where;
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

class DamagedPlanFile : public testing::TestWithParam<Damage> {};

TEST_P(DamagedPlanFile, IsRefusedAndSaysWhere) {
  Json json = Json::parse(text_of(sample_plan_file()));
  ASSERT_TRUE(read_plan(json.dump(), "plan.json"));
  GetParam().edit(json);
  const Result<PlanFile> read = read_plan(json.dump(), "plan.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(read.error().where, GetParam().where) << read.error().message;
  EXPECT_NE(read.error().message, "");
}

Json action(const char* what, std::uint64_t at, bool after, std::uint64_t op, std::vector<std::uint64_t> keeps) {
  return {{"do", what}, {"at", at}, {"after", after}, {"op", op}, {"keeps", std::move(keeps)}};
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedPlanFile,
    testing::Values(
        Damage{"no_object", [](Json& j) { j = Json::array(); }, "plan.json"},
        Damage{"no_format", [](Json& j) { j.erase("format"); }, "plan.json"},
        Damage{"other_format", [](Json& j) { j["format"] = "ullage-run"; }, "plan.json"},
        Damage{"later_version", [](Json& j) { j["version"] = 2; }, "plan.json: version"},
        Damage{"version_as_text", [](Json& j) { j["version"] = "1"; }, "plan.json: version"},
        Damage{"unknown_outcome", [](Json& j) { j["outcome"] = "maybe"; }, "plan.json: outcome"},
        Damage{"outcome_as_number", [](Json& j) { j["outcome"] = 1; }, "plan.json: outcome"},
        Damage{"negative_bytes", [](Json& j) { j["budget_bytes"] = -1; }, "plan.json: budget_bytes"},
        Damage{"bytes_in_parts", [](Json& j) { j["peak_bytes"] = 1.5; }, "plan.json: peak_bytes"},
        Damage{"peak_missing", [](Json& j) { j.erase("peak_bytes"); }, "plan.json: peak_bytes"},
        Damage{"peak_over_budget", [](Json& j) { j["peak_bytes"] = 1 << 30; }, "plan.json: peak_bytes"},
        Damage{"negative_time", [](Json& j) { j["step_seconds"] = -0.5; }, "plan.json: step_seconds"},
        Damage{"time_as_text", [](Json& j) { j["overhead_seconds"] = "1"; }, "plan.json: overhead_seconds"},
        Damage{"bound_as_text", [](Json& j) { j["lower_bound_seconds"] = "1"; }, "plan.json: lower_bound_seconds"},
        Damage{"memory_as_text", [](Json& j) { j["memory_bytes"] = "2GiB"; }, "plan.json: memory_bytes"},
        Damage{"torch_missing", [](Json& j) { j.erase("torch"); }, "plan.json: torch"},
        Damage{"command_of_numbers",
               [](Json& j) {
                 j["command"] = {1, 2};
               },
               "plan.json: command"},
        Damage{"levers_missing", [](Json& j) { j.erase("levers"); }, "plan.json: levers"},
        Damage{"lever_is_text", [](Json& j) { j["levers"][1] = "spill"; }, "plan.json: levers[1]"},
        Damage{"lever_has_no_bytes", [](Json& j) { j["levers"][1].erase("bytes"); }, "plan.json: levers[1].bytes"},
        Damage{"values_beyond_sense", [](Json& j) { j["values"] = 1ull << 60; }, "plan.json: values"},
        Damage{"values_that_nothing_names", [](Json& j) { j["values"] = 12; }, "plan.json: values"},
        Damage{"ops_is_object", [](Json& j) { j["ops"] = Json::object(); }, "plan.json: ops"},
        Damage{"key_too_short", [](Json& j) { j["ops"][0]["key"] = "12ab"; }, "plan.json: ops[0].key"},
        Damage{"key_no_digits", [](Json& j) { j["ops"][0]["key"] = "12ab12ab12ab12ag"; }, "plan.json: ops[0].key"},
        Damage{"key_with_sign", [](Json& j) { j["ops"][0]["key"] = "-2ab12ab12ab12ab"; }, "plan.json: ops[0].key"},
        Damage{"reads_unknown_value", [](Json& j) { j["ops"][1]["reads"][0] = 11; }, "plan.json: ops[1].reads[0]"},
        Damage{"reads_twice",
               [](Json& j) {
                 j["ops"][0]["reads"] = {0, 2, 0};
               },
               "plan.json: ops[0].reads[2]"},
        Damage{"reads_a_later_value", [](Json& j) { j["ops"][1]["reads"] = {7}; }, "plan.json: ops[1].reads"},
        Damage{"reads_its_own", [](Json& j) { j["ops"][0]["reads"] = {3}; }, "plan.json: ops[0].reads"},
        Damage{"applies_a_later_value", [](Json& j) { j["ops"][1]["batch_norm_reads"] = {7}; },
               "plan.json: ops[1].batch_norm_reads"},
        Damage{"applies_what_overwrites", [](Json& j) { j["ops"][2]["batch_norm_reads"] = {4}; },
               "plan.json: ops[2].batch_norm_reads"},
        Damage{"made_twice", [](Json& j) { j["ops"][3]["makes"] = {3}; }, "plan.json: ops[3].makes"},
        Damage{"overwrites_more_than_it_makes", [](Json& j) { j["ops"][2]["overwrites"] = 2; },
               "plan.json: ops[2].overwrites"},
        Damage{"unread_beyond_reads", [](Json& j) { j["ops"][3]["unread"] = {3}; }, "plan.json: ops[3].unread[0]"},
        Damage{"small_is_a_number", [](Json& j) { j["ops"][0]["small"] = 1; }, "plan.json: ops[0].small"},
        Damage{"carries_one", [](Json& j) { j["carried"][1] = {1}; }, "plan.json: carried[1]"},
        Damage{"carries_unknown_value",
               [](Json& j) {
                 j["carried"][1] = {1, 11};
               },
               "plan.json: carried[1]"},
        Damage{"carries_a_value_twice",
               [](Json& j) {
                 j["carried"][1] = {9, 0};
               },
               "plan.json: carried[1]"},
        Damage{"carries_a_last_value_twice",
               [](Json& j) {
                 j["carried"][1] = {8, 1};
               },
               "plan.json: carried[1]"},
        Damage{"schedule_missing", [](Json& j) { j.erase("schedule"); }, "plan.json: schedule"},
        Damage{"unknown_action", [](Json& j) { j["schedule"][0]["do"] = "burn"; }, "plan.json: schedule[0].do"},
        Damage{"action_beyond_ops", [](Json& j) { j["schedule"][4]["at"] = 5; }, "plan.json: schedule[4].at"},
        Damage{"action_of_unknown_value", [](Json& j) { j["schedule"][4]["value"] = 11; },
               "plan.json: schedule[4].value"},
        Damage{"action_of_no_value", [](Json& j) { j["schedule"][4].erase("value"); }, "plan.json: schedule[4].value"},
        Damage{"after_as_number", [](Json& j) { j["schedule"][0]["after"] = 1; }, "plan.json: schedule[0].after"},
        Damage{"action_out_of_order", [](Json& j) { j["schedule"][0]["at"] = 3; }, "plan.json: schedule[1]"},
        Damage{"before_behind_after", [](Json& j) { j["schedule"][1]["at"] = 0, j["schedule"][1]["after"] = false; },
               "plan.json: schedule[1]"},
        Damage{"recompute_of_unknown_op", [](Json& j) { j["schedule"][3] = action("recompute", 3, false, 5, {}); },
               "plan.json: schedule[3].op"},
        Damage{"recompute_before_the_op_ran", [](Json& j) { j["schedule"][3] = action("recompute", 3, false, 3, {}); },
               "plan.json: schedule[3].op"},
        Damage{"recompute_keeps_anothers", [](Json& j) { j["schedule"][3]["keeps"] = {3}; },
               "plan.json: schedule[3].keeps"},
        Damage{"recompute_keeps_twice", [](Json& j) { j["schedule"][3]["keeps"] = {7, 7}; },
               "plan.json: schedule[3].keeps[1]"},
        Damage{"apply_of_no_norm", [](Json& j) { j["schedule"][2] = action("batch-norm", 3, false, 0, {3}); },
               "plan.json: schedule[2].op"},
        Damage{"apply_keeps_statistics", [](Json& j) { j["schedule"][2]["keeps"] = {4, 5}; },
               "plan.json: schedule[2].keeps"},
        Damage{"away_unknown", [](Json& j) { j["away"] = {11}; }, "plan.json: away[0]"},
        Damage{"away_but_not_carried", [](Json& j) { j["away"] = {10}; }, "plan.json: away[0]"},
        Damage{"fits_and_acts", [](Json& j) { j["outcome"] = "fits"; }, "plan.json: schedule"},
        Damage{"infeasible_and_acts", [](Json& j) { j["outcome"] = "infeasible"; }, "plan.json: schedule"},
        Damage{"fits_above_the_budget",
               [](Json& j) { j["outcome"] = "fits", j["schedule"] = Json::array(), j["away"] = Json::array(); },
               "plan.json: plain_peak_bytes"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(PlanFile, ARecomputeMayStandBehindItsOwnOp) {
  Json json = Json::parse(text_of(sample_plan_file()));
  json["schedule"][3] = action("recompute", 3, true, 3, {10});
  EXPECT_TRUE(read_plan(json.dump(), "plan.json"));
}

TEST(PlanFile, SaysWhichNumberIsTooLargeAndItsLimit) {
  const auto message_of = [](const Json& json) {
    const Result<PlanFile> read = read_plan(json.dump(), "plan.json");
    EXPECT_FALSE(read);
    return read ? std::string() : read.error().message;
  };
  Json json = Json::parse(text_of(sample_plan_file()));
  json["schedule"][4]["at"] = 5;
  EXPECT_EQ(message_of(json), "is 5, must be below 5") << "the file has 5 ops, 0 to 4";
  json = Json::parse(text_of(sample_plan_file()));
  json["ops"][2]["overwrites"] = 2;
  EXPECT_EQ(message_of(json), "is 2, must be below 2") << "the op makes 1 value, so it may overwrite 0 or 1";
}

TEST(PlanFile, SaysWhereItIsNoJson) {
  const Result<PlanFile> read = read_plan("{\"format\": nonsense}", "plan.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().where, "plan.json:13");
}

}  // namespace
}  // namespace ullage::plan
