// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/advice_report.h"

#include "../folders.h"
#include "golden_file.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ullage::report {
namespace {

using advise::Basis;
using advise::Effect;

advise::Advice sample_advice() {
  advise::Advice advice;
  advice.command = {"python", "train.py"};
  advice.device = "NVIDIA GeForce RTX 3060";
  advice.memory = Bytes{12485394432};
  advice.plain.fits = false;
  advice.plain.peak = Bytes{16106127360};
  advice.refused = "2.30 GiB more are refused at train.py:305, after 10.39 GiB were taken";
  advice.rows.resize(4);
  advice.rows[0] = {.id = "expandable_segments+gradient_checkpointing",
                    .name = "together: allocator: expandable_segments:True + checkpoint each of 12 Block",
                    .fits = true,
                    .peak = Bytes{11865000000},
                    .more_time = 0.18,
                    .action = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; checkpoint(layer, x)",
                    .place = {},
                    .note = ""};
  advice.rows[1] = {.id = "half_precision",
                    .name = "bf16 autocast",
                    .effect = Effect::Rounding,
                    .fits = false,
                    .peak = Bytes{13958643712},
                    .more_time = std::nullopt,
                    .action = "with torch.autocast(\"cuda\", torch.bfloat16): around Net(...)",
                    .place = {"/home/x/train.py", 300},
                    .note = ""};
  advice.rows[2] = {.id = "chunked_loss",
                    .name = "chunked loss",
                    .effect_known = false,
                    .basis = Basis::Computed,
                    .fits = true,
                    .peak = Bytes{12000000000},
                    .more_time = std::nullopt,
                    .action = "compute head and loss in chunks",
                    .place = {},
                    .note = "in 8 chunks"};
  advice.rows[3] = {.id = "fused_optimizer",
                    .name = "optimizer: fused\x1b[2J",
                    .effect = Effect::Rounding,
                    .basis = Basis::NotTried,
                    .fits = std::nullopt,
                    .peak = std::nullopt,
                    .more_time = std::nullopt,
                    .action = "torch.optim.Adam(..., fused=True)",
                    .place = {"/home/x/train.py", 12},
                    .note = "not tried: the time of 2 min 00 s was over; --seconds gives more"};
  advice.time_basis = "of a step, estimated";
  advice.notes = {"a note"};
  advice.runs = 9, advice.wall = Seconds{61.5};
  return advice;
}

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

TEST(AdviceReport, NothingOfTheProgramReachesTheTerminalAsACommand) {
  EXPECT_EQ(advice_text(sample_advice(), 0).find('\x1b'), std::string::npos);
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
