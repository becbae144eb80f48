// SPDX-License-Identifier: Apache-2.0
// Reports of a plan on a terminal, as JSON and as a page.
#include "folders.h"
#include "golden_file.h"
#include "page_text.h"
#include "plan/sample_plan.h"
#include "ullage/report/html/html_plan_curve.h"
#include "ullage/report/plan_report.h"
#include "ullage/report/plan_words.h"
#include "ullage/report/terminal/terminal_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace ullage::report {
namespace {

using plan::Plan;

const std::filesystem::path kGolden = tests_folder() / "report/golden";

PlanReport sample() {
  PlanReport report;
  report.file = "run.ullage";
  report.step = plan::sample_step();
  report.beside = {Bytes{}, 8_MiB, 2_MiB};
  report.beside.outside = 310_MiB - report.beside.memory_for(150_MiB);  // about 147 MiB
  report.planned = plan::sample_plan_file();
  report.plain_levels = {104_MiB, 168_MiB + 512_B, 168_MiB + 512_B, 160_MiB + 512_B, 160_MiB + 512_B};
  report.planned_levels = {104_MiB, 136_MiB + 512_B, 136_MiB + 512_B, 136_MiB + 512_B, 120_MiB + 512_B};
  return report;
}

PlanReport sample_that_fits() {
  PlanReport report = sample();
  Plan& plan = report.planned->plan;
  plan.outcome = Plan::Outcome::Fits;
  plan.budget = 200_MiB, report.planned->memory = report.beside.memory_for(200_MiB), plan.peak = plan.plain_peak;
  plan.schedule = {}, plan.levers = {}, plan.overhead = {}, plan.bound = Seconds{};
  report.planned_levels.clear();
  return report;
}

PlanReport sample_that_does_not_fit() {
  PlanReport report = sample_that_fits();
  Plan& plan = report.planned->plan;
  plan.outcome = Plan::Outcome::Infeasible;
  plan.budget = 40_MiB, report.planned->memory = 200_MiB, plan.peak = Bytes{};
  plan.bound.reset();
  return report;
}

PlanReport with_curve(PlanReport report) {
  for (const std::uint64_t budget : {110, 120, 136, 150, 170}) {
    Plan& plan = report.curve.emplace_back(plan::sample_plan_file().plan);
    plan.budget = 1_MiB * budget, plan.schedule = {}, plan.levers = {};
    plan.overhead = Seconds{budget < 170 ? 0.0425 * (170.0 - double(budget)) / 20 : 0};
    plan.bound = Seconds{plan.overhead.count * 0.8};
    if (budget == 110) plan.outcome = Plan::Outcome::Infeasible, plan.bound.reset();
    if (budget == 170) plan.outcome = Plan::Outcome::Fits, plan.bound = Seconds{};
  }
  return report;
}

void check(const PlanReport& report) {
  if (!report.planned) return;
  const diagnose::Bar bar = memory_bar(report);
  Bytes sum;
  for (const diagnose::Bar::Part& part : bar.parts) sum += part.bytes;
  ASSERT_EQ(sum, bar.total) << "the rows of the memory add up";
  const bool fits = report.planned->plan.outcome != Plan::Outcome::Infeasible;
  ASSERT_EQ(bar.total, fits ? report.planned->memory : report.beside.memory_for(report.planned->plan.least));
  Bytes sites, totals;
  for (const plan::LeverUse& use : report.planned->plan.levers) sites += use.bytes;
  for (const LeverTotal& total : lever_totals(report.planned->plan)) totals += total.bytes;
  ASSERT_EQ(sites, totals);
}

std::string text_of(const PlanReport& report, const TerminalStyle& style = {}, const std::string& next = "") {
  check(report);
  std::ostringstream out;
  write_terminal(report, style, next, out);
  return out.str();
}

nlohmann::json json_of(const PlanReport& report) {
  check(report);
  std::ostringstream out;
  write_json(report, out);
  EXPECT_TRUE(out.str().ends_with("}\n"));
  return nlohmann::json::parse(out.str());
}

std::string page_of(const PlanReport& report) {
  check(report);
  std::ostringstream out;
  write_html(report, out);
  return page_text(out);
}

TEST(PlanReport, TellsAPersonOnOneScreen) {
  const std::string text = text_of(with_curve(sample()), {}, "ullage run --memory 310MiB --plan plan.json -- ./train");
  expect_golden(kGolden / "plan.txt", text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
}

TEST(PlanReport, TellsThatNoPlanIsNeeded) { expect_golden(kGolden / "plan_fits.txt", text_of(sample_that_fits())); }

TEST(PlanReport, TellsTheLeastThatWouldDoAndWhatSetsIt) {
  expect_golden(kGolden / "plan_infeasible.txt", text_of(sample_that_does_not_fit()));
}

TEST(PlanReport, TellsTheCurveAlone) {
  PlanReport report = with_curve(sample());
  report.planned.reset(), report.planned_levels.clear();
  expect_golden(kGolden / "plan_curve.txt", text_of(report, {}, "ullage plan --memory 329MiB run.ullage"));
}

TEST(PlanReport, KeepsToTheWidthAndHasColorsOnlyWhereAsked) {
  PlanReport report = with_curve(sample());
  report.planned->plan.levers[0].site = std::string(200, 'x');
  for (const unsigned width : {40u, 60u, 80u, 120u}) {
    TerminalStyle style;
    style.width = width;
    std::istringstream lines(text_of(report, style));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), width) << line;
  }
  EXPECT_EQ(text_of(report).find('\x1b'), std::string::npos);
  TerminalStyle colors;
  colors.colors = true;
  EXPECT_NE(text_of(report, colors).find("\x1b[1mFits 310.00 MiB"), std::string::npos);
}

TEST(PlanReport, NamesAsManySitesAsAsked) {
  TerminalStyle style;
  style.owners = 1;
  const std::string text = text_of(sample(), style);
  EXPECT_NE(text.find("The largest 1 of 3:"), std::string::npos) << text;
  EXPECT_EQ(text.find("aten::relu_ net.2"), std::string::npos) << text;
}

TEST(PlanReport, MakesForeignTextHarmless) {
  PlanReport report = sample();
  report.planned->plan.levers[0].site = report.planned->plan.levers[0].lever = "\x1b[2J\u202e";
  report.planned->plan.least_set_by = "\x1b]0;x\x07";
  const std::string text = text_of(report, {}, "ullage \x1b[2J");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

TEST(PlanReport, PercentsAreNeverNothingOfSomething) {
  EXPECT_EQ(percent_text(Seconds{0}, Seconds{1}), "+0 %");
  EXPECT_EQ(percent_text(Seconds{1e-6}, Seconds{1}), "<0.1 %");
  EXPECT_EQ(percent_text(Seconds{0.0123}, Seconds{1}), "+1.2 %");
  EXPECT_EQ(percent_text(Seconds{2}, Seconds{1}), "+200.0 %");
  EXPECT_EQ(percent_text(Seconds{1}, Seconds{0}), "-");
}

TEST(PlanReport, AddsUpTheUsesOfALever) {
  Plan plan;
  plan.levers = {
      {"spill", "a", 1_MiB, Seconds{1}}, {"recompute", "b", 4_MiB, Seconds{2}}, {"spill", "c", 2_MiB, Seconds{4}}};
  const std::vector<LeverTotal> totals = lever_totals(plan);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].lever, "recompute");
  EXPECT_EQ(totals[1].sites, 2u);
  EXPECT_EQ(totals[1].bytes, 3_MiB);
  EXPECT_EQ(totals[1].seconds, Seconds{5});
}

TEST(PlanReport, TheRowsAddUpToEveryByteOfTheMemory) {
  PlanReport report = sample();
  for (std::uint64_t byte = 0; byte < 400; ++byte) {
    report.planned->memory = 310_MiB + Bytes{byte};
    report.planned->plan.budget = report.beside.budget_of(report.planned->memory);
    check(report);
  }
}

TEST(PlanReport, NamesThePeakOfAllWhereItStandsInAGap) {
  PlanReport report = sample();
  report.planned->plan.plain_peak = 171_MiB;
  EXPECT_TRUE(peak_sentence(report).ends_with("136.00 MiB are present instead of 171.00 MiB")) << peak_sentence(report);
}

TEST(PlanReport, JsonIsThePlansFileAndMore) {
  const PlanReport report = with_curve(sample());
  const auto json = json_of(report);
  std::ostringstream file;
  write_plan(*report.planned, file);
  const auto written = nlohmann::json::parse(file.str());
  for (const auto& [key, value] : written.items()) EXPECT_EQ(json[key], value) << key;
  EXPECT_EQ(json["beside"], nlohmann::json({{"outside_bytes", report.beside.outside.count},
                                            {"margin_bytes", (8_MiB).count},
                                            {"rounding_bytes", (2_MiB).count},
                                            {"kept_free_bytes", report.beside.kept_free(150_MiB).count}}));
  for (const auto& point : json["curve"]) {
    const std::uint64_t rows = point["budget_bytes"].get<std::uint64_t>() +
                               point["kept_free_bytes"].get<std::uint64_t>() + (10_MiB).count +
                               report.beside.outside.count;
    EXPECT_EQ(point["memory_bytes"], rows);
  }
  ASSERT_EQ(json["curve"].size(), 5u);
  EXPECT_EQ(json["curve"][0]["outcome"], "infeasible");
  EXPECT_EQ(json["curve"][0]["lower_bound_seconds"], nullptr);
  EXPECT_EQ(json["curve"][4]["outcome"], "fits");
  EXPECT_EQ(json["curve"][3]["memory_bytes"], (310_MiB).count);
  EXPECT_EQ(json["curve"][3]["budget_bytes"], (150_MiB).count);
  EXPECT_EQ(json["curve"][3]["overhead_seconds"], 0.0425);
  // This JSON can be given to a run as a plan file.
  EXPECT_TRUE(plan::read_plan(json.dump(), "stdout"));
  EXPECT_FALSE(json_of(sample()).contains("curve"));
}

TEST(PlanReport, JsonOfTheCurveAloneIsNoPlan) {
  PlanReport report = with_curve(sample());
  report.planned.reset();
  const auto json = json_of(report);
  EXPECT_EQ(json["format"], "ullage-plan-curve");
  EXPECT_EQ(json["version"], 1);
  EXPECT_FALSE(json["beside"].contains("kept_free_bytes")) << "each point has its own";
  EXPECT_EQ(json["plain_peak_bytes"], report.step.peak.count);
  EXPECT_EQ(json["curve"].size(), 5u);
}

TEST(PlanPage, SaysWhatThePlanSays) {
  const std::string text = page_of(with_curve(sample()));
  for (const char* said : {"Fits 310.00 MiB with a plan", "What is done in each step", "aten::relu_ net.2", "momentum",
                           "torch 2.13.0", "./train --batch 4", "120.00 MiB", "<svg", "--memory 310MiB: +5.0 %"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said;
  }
  EXPECT_EQ(count(text, "<svg"), 1u);
  EXPECT_EQ(count(text, "class=\"asked\""), 1u);
  EXPECT_EQ(count(page_of(sample()), "<svg"), 0u);
}

TEST(PlanPage, TellsOfEveryActionAndBothTimelines) {
  const std::string text = page_of(sample());
  const std::size_t begin = text.find("class=\"plan-timeline\">") + 22;
  const auto json = nlohmann::json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  ASSERT_EQ(json["acts"].size(), 5u);
  EXPECT_EQ(json["acts"][0], nlohmann::json({0, "spilled", "momentum"}));
  EXPECT_EQ(json["acts"][2], nlohmann::json({3, "recomputed from its statistics", "aten::native_batch_norm net.1"}));
  std::int64_t plain = 0, planned = 0;
  for (std::size_t op = 0; op < 5; ++op) {
    plain += json["plain"][op].get<std::int64_t>(), planned += json["planned"][op].get<std::int64_t>();
    const plan::OpIndex at{op};
    EXPECT_EQ(static_cast<std::uint64_t>(plain), sample().plain_levels[at].count);
    EXPECT_EQ(static_cast<std::uint64_t>(planned), sample().planned_levels[at].count);
    EXPECT_EQ(json["names"][json["op"][op].get<std::size_t>()], sample().step.ops[at].name);
  }
  EXPECT_EQ(json["phases"], nlohmann::json({"forward", "backward", "optimizer"}));
}

TEST(PlanPage, EscapesEveryText) {
  const std::string evil = "</script></style><img onerror='x' title=\"&\">\x1b\u202e";
  PlanReport report = with_curve(sample());
  report.file = report.planned->torch = report.planned->plan.least_set_by = evil;
  report.planned->command = {evil};
  report.planned->plan.levers[0] = {evil, evil, 1_MiB, Seconds{1}};
  for (plan::StepStorage& storage : report.step.storages) storage.name = evil;
  for (plan::StepOp& op : report.step.ops) op.name = evil;
  const std::string plain = page_of(with_curve(sample())), text = page_of(report);
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
  EXPECT_EQ(count(text, "</script>"), count(plain, "</script>"));
  EXPECT_EQ(count(text, "</style>"), 1u);
}

TEST(PlanPage, HasOneTimelineWhereThereIsNoPlan) {
  for (const PlanReport& report : {sample_that_fits(), sample_that_does_not_fit()}) {
    EXPECT_NE(page_of(report).find("\"planned\":null"), std::string::npos);
  }
}

TEST(PlanCurve, DrawsAlsoOnePointAndNone) {
  PlanReport report = with_curve(sample());
  report.curve.resize(2);
  for (Plan& plan : report.curve) plan.outcome = Plan::Outcome::Infeasible;
  EXPECT_EQ(count(plan_curve_svg(report), "<circle"), 0u);
  report.curve = {with_curve(sample()).curve[4]};
  const std::string svg = plan_curve_svg(report);
  EXPECT_EQ(count(svg, "<circle"), 1u);
  for (const char* broken : {"nan", "inf"}) EXPECT_EQ(svg.find(broken), std::string::npos) << svg;
  report.curve.clear();
  EXPECT_EQ(plan_curve_svg(report), "");
}

}  // namespace
}  // namespace ullage::report
