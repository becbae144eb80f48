// SPDX-License-Identifier: Apache-2.0
// The page of an Advice and the curves on it.
#include "report/page_text.h"
#include "report/sample_advice.h"
#include "small_training.h"

#include "ullage/report/advice_curve.h"
#include "ullage/report/advice_report.h"
#include "ullage/trace/meaning/levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace ullage::report {
namespace {

std::string advice_page(const advise::Advice& advice) {
  std::ostringstream out;
  write_html(advice, out);
  return page_text(out);
}

TEST(HtmlAdvice, HasEveryRowAndACurveForThoseThatWereRecorded) {
  const std::string text = advice_page(sample_advice_with_curves());
  EXPECT_NE(text.find("<h1>needs 15.00 GiB of the 11.62 GiB of NVIDIA GeForce RTX 3060</h1>"), std::string::npos);
  EXPECT_EQ(count(text, "<tr class=\"fits\""), 3u);  // two runs and what is computed
  EXPECT_EQ(count(text, "<tr class=\"too-large\""), 2u);
  EXPECT_EQ(count(text, "\"steps\":"), 4u);
  // In the table, each in the color of its curve; the script makes the legend.
  EXPECT_EQ(count(text, "<i class=\"dot k-"), 3u);
  for (const char* dot : {"dot k-1\"></i><b>together", "dot k-2\"></i><b>plan", "dot k-3\"></i><b>bf16"})
    EXPECT_NE(text.find(dot), std::string::npos) << dot;
  for (const char* said : {"+18 %", "same bits", "train.py:300", "in 8 chunks", "a note", "9 runs in"})
    EXPECT_NE(text.find(said), std::string::npos) << said;
}

TEST(HtmlAdvice, WhatAProcessTakesWithoutUllage) {
  advise::Advice advice = sample_advice();
  advice.memory = 600_MiB;
  EXPECT_EQ(advice_page(advice).find("without Ullage"), std::string::npos);
  advice.plain.plainly = {800_MiB, {}, std::nullopt};
  advice.rows[0].plainly = {550_MiB, {}, std::nullopt};
  const std::string text = advice_page(advice);
  EXPECT_EQ(count(text, "<p>without Ullage: 800.00 MiB, does not fit</p>"), 1u);
  EXPECT_EQ(count(text, "<p class=\"reason\">without Ullage: 550.00 MiB, fits three steps</p>"), 1u);
}

TEST(HtmlAdvice, WithoutCurvesThereIsNoTimeline) {
  const std::string text = advice_page(sample_advice());
  EXPECT_EQ(count(text, "class=\"advice-timeline\""), 0u);
  EXPECT_NE(text.find("bf16 autocast"), std::string::npos);
}

TEST(HtmlAdvice, NothingOfTheProgramEndsAnElement) {
  advise::Advice advice = sample_advice_with_curves();
  const std::string plain = advice_page(advice);
  const std::string evil = "</script></style><img onerror='x' title=\"&\">\u202e";
  advice.command = {evil}, advice.device = advice.refused = advice.time_basis = evil, advice.notes = {evil};
  for (advise::Row& row : advice.rows) row.id = row.name = row.action = row.note = evil, row.place = {evil, 1};
  const std::string text = advice_page(advice);
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
  EXPECT_EQ(count(text, "</script>"), count(plain, "</script>"));
  EXPECT_EQ(count(text, "</style>"), 1u);
}

TEST(AdviceCurve, HasTheMostOfEachPartOfEachStep) {
  SmallTraining program(4);
  program.steps(3);
  trace::UnderstoodFile file = understood(file_of({program.take()}));
  const std::vector<Bytes> live = trace::levels(file.file.takes[0].trace).live;
  const Bytes most = std::ranges::max(live);
  const std::vector<EventId> begins = file.meanings[0].steps.begins;

  const auto curve = curve_of(trace::Input(std::move(file)), most + 100_MiB);
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->beside, 100_MiB);
  ASSERT_EQ(curve->steps.size(), begins.size());
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto to =
        i + 1 < begins.size() ? live.begin() + static_cast<std::ptrdiff_t>(begins[i + 1].value) : live.end();
    const Bytes in_step = *std::max_element(live.begin() + static_cast<std::ptrdiff_t>(begins[i].value), to);
    EXPECT_EQ(curve->steps[i].tensors.size(), advise::Curve::kParts);
    EXPECT_EQ(std::ranges::max(curve->steps[i].tensors), in_step) << i;
    EXPECT_EQ(std::ranges::max(curve->steps[i].held), in_step) << i;
  }
}

TEST(AdviceCurve, ALogHasNone) { EXPECT_FALSE(curve_of(trace::Log{}, 1_GiB)); }

TEST(AdviceCurve, APlanIsTheLastStep) {
  Table<plan::OpIndex, Bytes> levels;
  for (const std::uint64_t level : {1, 5, 2}) levels.push_back(Bytes{level});
  const advise::Curve curve = curve_of(levels, 3, 10_B);
  ASSERT_EQ(curve.steps.size(), 3u);
  EXPECT_TRUE(curve.steps[0].tensors.empty());
  EXPECT_EQ(curve.steps[2].tensors.front(), 1_B);
  EXPECT_EQ(std::ranges::max(curve.steps[2].tensors), 5_B);
  EXPECT_EQ(curve.beside, 10_B);
}

}  // namespace
}  // namespace ullage::report
