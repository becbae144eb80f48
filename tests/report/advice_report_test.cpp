// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/advice_report.h"

#include "../folders.h"
#include "golden_file.h"
#include "sample_advice.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace ullage::report {
namespace {

std::string advice_text(const advise::Advice& advice, std::size_t top) {
  std::ostringstream out;
  write_terminal(advice, TerminalStyle{}, top, out);
  return out.str();
}

TEST(AdviceReport, Terminal) {
  expect_golden(tests_folder() / "report/golden/advice.txt", advice_text(sample_advice(), 0));
}

TEST(AdviceReport, Json) {
  std::ostringstream out;
  write_json(sample_advice(), out);
  expect_golden(tests_folder() / "report/golden/advice.json", out.str());
}

TEST(AdviceReport, WhatIsLeftOutIsCounted) {
  const std::string text = advice_text(sample_advice(), 1);
  EXPECT_NE(text.find(" 3 more: --top 0"), std::string::npos) << text;
  EXPECT_EQ(text.find("bf16"), std::string::npos) << text;
}

TEST(AdviceReport, ACommandStandsOnOneLine) {
  advise::Advice advice = sample_advice();
  const std::string words(60, 'x');
  advice.rows[0].action = "ullage run --memory 4GiB -- python " + words + " " + words;
  EXPECT_NE(advice_text(advice, 0).find("      " + advice.rows[0].action), std::string::npos) << advice_text(advice, 0);
}

TEST(AdviceReport, NothingOfTheProgramReachesTheTerminalAsACommand) {
  EXPECT_EQ(advice_text(sample_advice(), 0).find('\x1b'), std::string::npos);
}

TEST(AdviceReport, WhatAProcessTakesWithoutUllage) {
  advise::Advice advice = sample_advice();
  advice.memory = 600_MiB;
  advice.plain.plainly = {800_MiB, {}, 640_MiB};
  advice.rows[0].plainly = {700_MiB, {}, 500_MiB};
  advice.rows[1].plainly = {550_MiB, 90_MiB, std::nullopt};
  advice.rows[3].plainly = {580_MiB, {}, std::nullopt};
  const std::string text = advice_text(advice, 0);
  for (const char* said :
       {"\nwithout Ullage: 800.00 MiB, does not fit; with MALLOC_MMAP_THRESHOLD_=131072 640.00 MiB, does not fit\n",
        "      without Ullage: 700.00 MiB, does not fit; with\n",
        "      MALLOC_MMAP_THRESHOLD_=131072 500.00 MiB, fits three steps\n",
        "      without Ullage: 550.00 MiB, fits three steps; 90.00 MiB of them are in\n      other processes\n",
        "      without Ullage: 580.00 MiB, just fits three steps; another run may not\n"})
    EXPECT_NE(text.find(said), std::string::npos) << said << text;
  std::ostringstream out;
  write_json(advice, out);
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["plain"]["without_ullage"]["peak_bytes"], (800_MiB).count);
  EXPECT_EQ(json["remedies"][1]["without_ullage"]["others_bytes"], (90_MiB).count);
  EXPECT_EQ(json["remedies"][0]["without_ullage"]["lean_malloc_bytes"], (500_MiB).count);
  EXPECT_TRUE(json["remedies"][1]["without_ullage"]["lean_malloc_bytes"].is_null());
  EXPECT_TRUE(json["remedies"][2]["without_ullage"].is_null());
}

TEST(AdviceReport, AProgramThatFitsSaysSoFirst) {
  advise::Advice advice = sample_advice();
  advice.plain.fits = true, advice.refused.clear(), advice.rows.clear();
  const std::string text = advice_text(advice, 0);
  EXPECT_EQ(text.find("fits as it is: 15.00 GiB of the 11.62 GiB"), 0U) << text;
  EXPECT_NE(text.find("no remedy applies"), std::string::npos) << text;
}

}  // namespace
}  // namespace ullage::report
