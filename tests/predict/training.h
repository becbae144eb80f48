// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program whose peak can be worked out by hand, and what the tests ask of predict().

#include "ullage/predict/predict.h"

#include "program.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace ullage::predict {

inline constexpr std::uint64_t kModel = 1048576;

// Makes a model of 1 MiB and trains it. A step has an input, activations of 100,000 B an image, and a backward op. That
// op has a gradient and scratch of 200,000 B an image. The first step makes the optimizer's state.
inline void train(Program& p, int steps = 3, std::uint64_t kept = 0) {
  const std::int64_t batch = p.knob("batch");
  const auto images = std::uint64_t(batch);
  const StorageId weight = p.op("make_weight", kModel);
  p.role(weight, trace::Role::Parameter, "net.weight");
  for (int step = 0; step < steps; ++step) {
    const StorageId input = p.op("load", 40000 * images);
    const OpId conv = p.begin("conv", {reads(input, {batch, 10000}), reads(weight, {262144})});
    const StorageId out = p.make(100000 * images);
    p.end(conv, {gives(out, {batch, 25000})});
    p.save(out);
    const OpId back = p.begin("conv_backward", {reads(out, {batch, 25000})});
    const StorageId scratch = p.make(200000 * images + 512);
    const StorageId gradient = p.make(kModel);
    p.free(scratch);
    p.end(back, {gives(gradient, {262144})});
    p.unsave(out);
    p.free(out);
    p.free(input);
    if (step == 0) p.op("make_state", kModel);
    p.free(gradient);
    if (kept > 0) p.op("keep_loss", kept);
    p.step_end();
  }
}
inline std::uint64_t train_peak(std::int64_t batch) { return 340000 * std::uint64_t(batch) + 512 + 3 * kModel; }

inline Question at_batch(std::int64_t batch) { return {{{"batch", batch}}, std::nullopt, std::nullopt}; }

using Answered = Result<std::variant<Prediction, NeedsTakes>>;
inline Prediction predicted(const Answered& result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
  if (!result.ok()) return {};
  const auto* missing = std::get_if<NeedsTakes>(&*result);
  EXPECT_EQ(missing, nullptr) << missing->why;
  return missing != nullptr ? Prediction{} : std::get<Prediction>(*result);
}
inline NeedsTakes needs_takes(const Answered& result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
  if (!result.ok()) return {};
  const auto* found = std::get_if<NeedsTakes>(&*result);
  EXPECT_NE(found, nullptr) << "was predicted";
  return found != nullptr ? *found : NeedsTakes{};
}
inline std::string refused(const Answered& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().text();
}

// The peak of a run of the program at this batch.
inline Bytes measured_peak(const Does& program, std::int64_t batch) {
  const trace::TraceFile one = takes_by_batch(program, {batch});
  const trace::Trace& trace = one.takes[0].trace;
  return trace::find(trace, trace::levels(trace), trace::At::Peak)->live;
}

}  // namespace ullage::predict
