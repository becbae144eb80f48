// SPDX-License-Identifier: Apache-2.0
// Reports of a prediction on a terminal and as JSON.
#include "folders.h"
#include "golden_file.h"
#include "ullage/report/prediction_report.h"
#include "ullage/report/terminal/terminal_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>
#include <sstream>

namespace ullage::report {
namespace {

using predict::Law;
using predict::Prediction;

const std::filesystem::path kGoldenPrediction = tests_folder() / "report/golden";

template <class Rows>
Bytes sum_of(const Rows& rows) {
  Bytes sum;
  for (const auto& row : rows) sum += row.bytes;
  return sum;
}

// A made-up prediction for a DCGAN. The invariants of the type are checked whenever one is written.
Prediction sample_prediction() {
  Prediction prediction;
  prediction.at = {{"batch", 128}};
  prediction.why = "2066 events are the same at batch 2, 3 and 4, and every size follows the batch";
  prediction.rows = {{"parameters", 360_MiB, ""},
                     {"gradients", 360_MiB, ""},
                     {"optimizer state", 720_MiB, ""},
                     {"saved activations", 3500_MiB, ""},
                     {"temporaries", 400_MiB, ""},
                     {"rounding up to pages", 1_MiB, ""},
                     {"program and libraries", 140_MiB, "the most of the takes"}};
  prediction.owners = {{"aten::convolution netG.main.6", trace::Category::Activations, 2000_MiB, 12, {}},
                       {"aten::batch_norm netG.main.7", trace::Category::Activations, 1500_MiB, 10, {}},
                       {"exp_avg", trace::Category::OptimizerState, 720_MiB, 72, {}},
                       {"aten::mm", trace::Category::Temporaries, 400_MiB, 3, {}},
                       {"netG.main.0.weight", trace::Category::Parameters, 360_MiB, 36, {}},
                       {"netG.main.0.weight", trace::Category::Gradients, 300_MiB, 30, {}},
                       {"netD.main.0.weight", trace::Category::Gradients, 60_MiB, 6, {}}};
  prediction.pool_peak = sum_of(prediction.owners);
  prediction.pool_resident_peak = prediction.pool_peak + 1_MiB;
  prediction.process_peak = sum_of(prediction.rows);
  prediction.peak_op = "aten::convolution_backward";
  prediction.peak_layer = "netG.main.6";
  prediction.peak_phase = "backward";
  prediction.peak_step = 2;
  prediction.step = Seconds{43.2};
  prediction.phases_not_seen = {"checkpoint", "what comes after step 3"};
  return prediction;
}

Prediction sample_with_all() {
  Prediction prediction = sample_prediction();
  prediction.law = Law::Bound;
  prediction.memory = 4_GiB;
  prediction.largest = {{"batch", 92, 4090_MiB, Law::Exact},
                        {"size", 0, Bytes{}, Law::None},
                        {"blocks", 1, 300_MiB, Law::Exact, false, "separable"},
                        {"parts", 4, 200_MiB, Law::Exact, false, "", false, "--allow fewer"}};
  prediction.planned = predict::PlannedFit{true, 3_GiB, 0.0831, 63, 163};
  prediction.largest_square = {{"width", "height"}, {"width", 784, 4080_MiB, Law::Bound}};
  predict::Cuda cuda;
  cuda.allocated_peak = 4800_MiB;
  cuda.reserved_peak = 5000_MiB;
  cuda.capacity = 8_GiB;
  cuda.answer = predict::CudaAnswer{};
  cuda.answer->fits = true;
  cuda.rows = {{"reserved by the caching allocator", 5000_MiB, ""}, {"CUDA context", 450_MiB, "known of H100"}};
  cuda.process_peak = sum_of(cuda.rows);
  prediction.cuda = cuda;
  return prediction;
}

void check(const Prediction& prediction) {
  ULLAGE_CHECK(sum_of(prediction.rows) == prediction.process_peak, "rows add up");
  ULLAGE_CHECK(sum_of(prediction.owners) == prediction.pool_peak, "owners add up");
  ULLAGE_CHECK(!prediction.cuda || sum_of(prediction.cuda->rows) == prediction.cuda->process_peak, "card adds up");
}

std::string text_of(const Prediction& prediction, const TerminalStyle& style = {}, const std::string& next = "") {
  check(prediction);
  std::ostringstream out;
  write_terminal(prediction, style, next, out);
  return out.str();
}

nlohmann::json json_of(const Prediction& prediction) {
  check(prediction);
  std::ostringstream out;
  write_json(prediction, out);
  return nlohmann::json::parse(out.str());
}

// Its peak is that of a card without an end: near the end of one, cached segments are given back first.
TEST(PredictionReport, TheAllocatorsModelDecidesWhetherACardSuffices) {
  Prediction prediction = sample_with_all();
  const auto text = [&] { return std::regex_replace(text_of(prediction), std::regex("\n *"), " "); };
  prediction.cuda->capacity = 5_GiB;
  prediction.cuda->answer->retries = 2;
  EXPECT_NE(text().find("; fits 5.00 GiB, if cached segments are given back (2 times)"), std::string::npos) << text();
  EXPECT_EQ(json_of(prediction)["cuda"]["fits"], true);
  *prediction.cuda->answer = {false, 2, 512_MiB, 4_GiB, 4200_MiB, 100_MiB, "aten::mm"};
  EXPECT_NE(text().find("; DOES NOT FIT 5.00 GiB: aten::mm asks for 512.00 MiB with 4.00 GiB allocated, 4.10 GiB "
                        "reserved and 100.00 MiB free"),
            std::string::npos)
      << text();
  EXPECT_EQ(json_of(prediction)["cuda"]["fits"], false);
  prediction.cuda->answer.reset(), prediction.cuda->capacity.reset();
  EXPECT_EQ(json_of(prediction)["cuda"]["fits"], nullptr);
}

TEST(PredictionReport, TellsAPersonOnOneScreen) {
  const std::string text = text_of(sample_prediction(), {}, "ullage run --memory 5481MiB dcgan --batch 128");
  expect_golden(kGoldenPrediction / "prediction.txt", text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25);
}

TEST(PredictionReport, TellsOfMemoryAndCardWhereAsked) {
  expect_golden(kGoldenPrediction / "prediction_all.txt", text_of(sample_with_all()));
}

TEST(PredictionReport, WritesTheJsonOfTheContract) {
  std::ostringstream out;
  check(sample_with_all());
  write_json(sample_with_all(), out);
  expect_golden(kGoldenPrediction / "prediction.json", out.str());
}

TEST(PredictionReport, WritesNullForWhatWasNotAskedOrIsNotKnown) {
  Prediction prediction = sample_prediction();
  prediction.peak_op.clear();
  prediction.peak_layer.clear();
  prediction.peak_phase.clear();
  prediction.peak_step = 0;
  const auto json = json_of(prediction);
  for (const char* field : {"largest_that_fits", "largest_square", "memory_bytes", "fits", "cuda", "peak_op",
                            "peak_layer", "peak_phase", "peak_step"}) {
    EXPECT_TRUE(json.at(field).is_null()) << field;
  }
  EXPECT_TRUE(json["largest"].empty());
}

TEST(PredictionReport, SaysWhichLawItIs) {
  Prediction prediction = sample_prediction();
  EXPECT_NE(text_of(prediction).find("bytes), exact\n"), std::string::npos) << text_of(prediction);
  prediction.law = Law::Bound;
  EXPECT_EQ(json_of(prediction)["law"], "bound");
  EXPECT_NE(text_of(prediction).find("batch=128: at most 5.35 GiB (5747245056 bytes)\n"), std::string::npos)
      << text_of(prediction);
  prediction.law = Law::None;
  prediction.measured = true;
  EXPECT_EQ(json_of(prediction)["law"], "none");
  EXPECT_EQ(json_of(prediction)["measured"], true);
  EXPECT_NE(text_of(prediction).find("bytes), measured\n"), std::string::npos) << text_of(prediction);
}

TEST(PredictionReport, WhatJustFitsFits) {
  Prediction prediction = sample_prediction();
  prediction.memory = prediction.process_peak;
  EXPECT_EQ(json_of(prediction)["fits"], true);
  EXPECT_NE(text_of(prediction).find("\nFits 5.35 GiB without a plan\n"), std::string::npos) << text_of(prediction);
  prediction.memory = prediction.process_peak - 1_B;
  EXPECT_EQ(json_of(prediction)["fits"], false);
  EXPECT_NE(text_of(prediction).find("\nDOES NOT FIT 5.35 GiB without a plan: 1 B more are needed\n"),
            std::string::npos)
      << text_of(prediction);
}

TEST(PredictionReport, NoNameOfARecordingReachesTheTerminalAsItIs) {
  Prediction prediction = sample_with_all();
  const std::string evil = "\x1b[2J\r\nullage: done\xE2\x80\xAE";
  prediction.why = prediction.peak_op = prediction.peak_layer = prediction.peak_phase = evil;
  prediction.owners.front().name = prediction.rows.front().name = prediction.at.front().name = evil;
  prediction.cuda->rows.front().name = prediction.cuda->rows.back().source = evil;
  prediction.phases_not_seen = {evil};
  prediction.largest.front().knob = evil;
  for (const bool unicode : {false, true}) {
    TerminalStyle style;
    style.unicode = unicode;
    const std::string text = text_of(prediction, style, "ullage " + evil);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
  }
  EXPECT_EQ(json_of(prediction)["why"], evil);
}

TEST(PredictionReport, NoLineIsWiderThanTheTerminalButACommand) {
  Prediction prediction = sample_with_all();
  prediction.owners.front().name = std::string(300, 'a');
  prediction.peak_op = std::string(300, 'b');
  prediction.phases_not_seen = {std::string(300, 'c')};
  for (const unsigned width : {10u, 40u, 63u, 80u, 200u}) {
    TerminalStyle style;
    style.width = width;
    std::istringstream lines(text_of(prediction, style));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), std::clamp(width, 40u, 120u)) << line;
  }
}

TEST(PredictionReport, OwnersNotNamedAreARow) {
  TerminalStyle style;
  style.owners = 2;
  EXPECT_NE(text_of(sample_prediction(), style).find("   1.79 GiB  34 %  5 others\n"), std::string::npos)
      << text_of(sample_prediction(), style);
  style.owners = 100;
  EXPECT_EQ(text_of(sample_prediction(), style).find("others"), std::string::npos);
}

TEST(PredictionReport, OfNothingAtAllSaysSo) {
  Prediction prediction;
  EXPECT_TRUE(text_of(prediction).starts_with("Peak of the process at the sizes it ran with: 0 B"))
      << text_of(prediction);
}

}  // namespace
}  // namespace ullage::report
