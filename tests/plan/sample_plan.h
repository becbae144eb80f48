// SPDX-License-Identifier: Apache-2.0
#pragma once

// A step of a small convolution net and a plan for it, for tests of how plans are written and shown. The figures of the
// plan are made up and not verified.

#include "ullage/plan/file/plan_file.h"

#include <string>

namespace ullage::plan {

// Values: 0 is the weight before the step and 8 after it, 1 and 9 are its momentum before and after, 2 is the picture.
// conv makes 3; batch norm makes 4 and the statistics 5 and 6; relu_ overwrites 4 by 7; backward makes the gradient 10.
inline Step sample_step() {
  Step step;
  const auto storage = [&](Bytes bytes, const std::string& name, trace::Category category, bool lives = false) {
    return step.storages.push_back({{step.storages.size()}, bytes, name, category, lives, lives, bytes >= 64_KiB});
  };
  using Category = trace::Category;
  const StorageIndex weight = storage(16_MiB, "net.0.weight", Category::Parameters, true);
  const StorageIndex momentum = storage(16_MiB, "momentum", Category::OptimizerState, true);
  const StorageIndex picture = storage(8_MiB, "input", Category::Inputs);
  const StorageIndex convolved = storage(64_MiB, "aten::convolution net.0", Category::Activations);
  const StorageIndex normed = storage(64_MiB, "aten::native_batch_norm net.1", Category::Activations);
  const StorageIndex mean = storage(256_B, "aten::native_batch_norm net.1", Category::Activations);
  const StorageIndex deviation = storage(256_B, "aten::native_batch_norm net.1", Category::Activations);
  const StorageIndex gradient = storage(16_MiB, "net.0.weight", Category::Gradients);
  step.values = {{weight, kNone, {4}}, {momentum, kNone, {4}}, {picture, kNone, kNone}, {convolved, {0}, kNone},
                 {normed, {1}, {2}},   {mean, {1}, kNone},     {deviation, {1}, kNone}, {normed, {2}, kNone},
                 {weight, {4}, kNone}, {momentum, {4}, kNone}, {gradient, {3}, kNone}};
  const auto op = [&](const std::string& name, trace::Phase phase, double took, std::vector<ValueIndex> reads,
                      std::vector<ValueIndex> makes) -> StepOp& {
    StepOp one;
    one.name = name, one.phase = phase, one.took = Seconds{took}, one.key = 0xfeedfacecafebee0 + step.ops.size();
    one.in_take = OpId{step.ops.size()}, one.reads = std::move(reads), one.makes = std::move(makes);
    for (const ValueIndex value : one.makes) {
      const StorageIndex in = step.values[value].storage;
      if (step.values[value].overwritten_by != kNone || !step.storages[in].from_before) {
        one.rise += step.storages[in].bytes;
      }
    }
    return step.ops.emplace_back(std::move(one));
  };
  using Phase = trace::Phase;
  op("aten::convolution", Phase::Forward, 0.2, {{0}, {2}}, {{3}}).recompute =
      Recompute{{{0}, {2}}, Seconds{0.2}, 64_MiB};
  StepOp& norm = op("aten::native_batch_norm", Phase::Forward, 0.06, {{3}}, {{4}, {5}, {6}});
  norm.recompute = Recompute{{{3}}, Seconds{0.06}, 64_MiB + 512_B};
  norm.batch_norm = Recompute{{{3}, {5}, {6}}, Seconds{0.015}, 64_MiB};
  StepOp& relu = op("aten::relu_", Phase::Forward, 0.01, {{4}}, {{7}});
  relu.overwrites = 1, relu.rise = Bytes{}, relu.recompute = Recompute{{{4}}, Seconds{0.01}, Bytes{}};
  op("aten::convolution_backward", Phase::Backward, 0.5, {{7}, {3}, {0}}, {{10}}).unread = {2};
  StepOp& update = op("aten::add_", Phase::Optimizer, 0.03, {{0}, {1}, {10}}, {{8}, {9}});
  update.overwrites = 2, update.rise = Bytes{};
  step.gaps.resize(step.ops.size() + 1);
  step.gaps.front() = {{picture, true}};
  step.level = 32_MiB, step.peak = 168_MiB + 512_B, step.overhead = 2_MiB, step.outside = 150_MiB, step.saved = 136_MiB;
  step.seconds = Seconds{0.85}, step.in_ops = Seconds{0.8};
  return step;
}

inline PlanFile sample_plan_file() {
  using What = Action::What;
  PlanFile file;
  file.sites = sites_of(sample_step());
  file.torch = "2.13.0", file.command = {"./train", "--batch", "4"}, file.seed = 7, file.memory = 310_MiB;
  Plan& plan = file.plan;
  plan.outcome = Plan::Outcome::Planned;
  plan.budget = 150_MiB, plan.peak = 136_MiB + 512_B, plan.plain_peak = 168_MiB + 512_B;
  plan.least = 120_MiB, plan.least_set_by = "aten::convolution_backward net.0 (backward)";
  plan.step = Seconds{0.85}, plan.overhead = Seconds{0.0425}, plan.bound = Seconds{0.034};
  plan.schedule.actions = {{What::Spill, {0}, true, {1}},
                           {What::Drop, {2}, true, {7}},
                           {What::BatchNorm, {3}, false, {}, {1}, {{4}}},
                           {What::Recompute, {3}, false, {}, {2}, {{7}}},
                           {What::Restore, {4}, false, {1}}};
  plan.schedule.away = {{1}};
  plan.levers = {{"batch-norm", "aten::native_batch_norm net.1", 64_MiB, Seconds{0.015}},
                 {"recompute", "aten::relu_ net.2", 64_MiB, Seconds{0.01}},
                 {"state", "momentum", 16_MiB, Seconds{0.0175}}};
  return file;
}

}  // namespace ullage::plan
