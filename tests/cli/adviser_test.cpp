// SPDX-License-Identifier: Apache-2.0
// Tests which rows the answer of `ullage advise` has, with runs that are made up.
#include "ullage/cli/adviser.h"

#include "ullage/cli/planned_fit.h"

#include "small_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::cli {
namespace {

using advise::Advice;
using advise::Basis;
using advise::Row;
using Clock = std::chrono::steady_clock;

constexpr Bytes kOthers = 50_MiB;

// Says what each run took. Keeps the orders.
class MadeUpRuns final : public AdviseRuns {
 public:
  explicit MadeUpRuns(std::function<Tried(const TryOrder&)> answer) : answer_(std::move(answer)) {}
  Tried run(const TryOrder& order) override { return answer_(order); }
  std::size_t side_by_side(Bytes) const override { return 1; }

 private:
  std::function<Tried(const TryOrder&)> answer_;
};

// What a training with repeated layers and an optimizer does. `cast` is there in every run, though only a trial of bf16
// would have it.
advise::Facts training() {
  advise::Facts facts;
  facts.network = facts.cast = {{"train.py", 40}, "Net", "cpu"};
  facts.optimizer = {{"train.py", 20}, "AdamW", true, true, std::nullopt, std::nullopt, "cpu"};
  facts.repeated_layers = {{"model.py", 7}, "Block", 12, false};
  return facts;
}

// A recorded run of SmallTraining, whose data loader holds kOthers beside it.
Tried recorded(Bytes memory) {
  const trace::TraceFile file = small_file();
  predict::Prediction prediction;
  prediction.take = file.takes.back();
  prediction.memory = saturating_sub(memory, kOthers);
  prediction.pool_resident_peak = 500_MiB;
  prediction.process_peak = prediction.pool_resident_peak + file.takes.back().process.outside_peak;
  Tried tried;
  tried.end = Tried::End::RanOut, tried.others = kOthers, tried.peak = prediction.process_peak + kOthers;
  tried.prediction = std::move(prediction), tried.facts = training();
  return tried;
}

AdviseQuestion question(Bytes memory, double seconds = 600) {
  AdviseQuestion asked;
  asked.device = "cpu", asked.memory = memory, asked.target = {"--", "python", "train.py"};
  asked.seconds = Seconds{seconds}, asked.began = Clock::now();
  return asked;
}

Advice advice_on(const AdviseQuestion& asked, const std::function<Tried(const TryOrder&)>& answer) {
  MadeUpRuns runs(answer);
  std::ostringstream err;
  Progress progress(err, false);
  auto advice = advise_on(runs, asked, progress, err);
  EXPECT_TRUE(std::holds_alternative<Advice>(advice)) << err.str();
  return std::get<Advice>(std::move(advice));
}

// The plan of the process that trains, which gets what the others leave of the memory.
predict::PlannedFit planned_alone(Bytes memory) {
  std::ostringstream err;
  Progress progress(err, false);
  predict::Prediction prediction = *recorded(memory).prediction;
  add_planned_fit(prediction, progress, err);
  return *prediction.planned;
}

const Row* find(const Advice& advice, const std::string& id) {
  const auto row = std::ranges::find(advice.rows, id, &Row::id);
  return row == advice.rows.end() ? nullptr : &*row;
}

TEST(Adviser, WhatTimeDidNotReachIsListedWithTheReason) {
  AdviseQuestion asked = question(280_MiB, 1);
  asked.began = Clock::now() - std::chrono::hours(1);
  const Advice advice = advice_on(asked, [&](const TryOrder&) { return recorded(asked.memory); });
  EXPECT_EQ(advice.runs, 1u) << "the program as it is";
  for (const char* id : {"gradient_checkpointing", "half_precision", "lean_malloc"}) {
    const Row* row = find(advice, id);
    ASSERT_NE(row, nullptr) << id;
    EXPECT_EQ(row->basis, Basis::NotTried) << id;
    EXPECT_FALSE(row->fits || row->peak || row->more_time) << id;
    EXPECT_EQ(row->note, "not tried: the time limit of 1.0 s was reached; --seconds raises it") << id;
  }
}

// The first option never ends by itself; the second is quick. Without a share of the time for each, the first takes
// all.
TEST(Adviser, ASlowOptionLeavesTimeForAQuickOne) {
  AdviseQuestion asked = question(100_MiB, 0.4);
  asked.target = {"dcgan"};
  const auto answer = [](const TryOrder& order) {
    Tried tried;
    tried.peak = 200_MiB, tried.end = Tried::End::RanOut, tried.prediction.emplace();
    if (order.trial == nullptr) {
      tried.choices = {{"precision", 2, {1, 2}, {"bf16", "fp32"}}, {"image-size", 64, {16, 64}}};
    } else if (order.trial->options.front().name == "precision") {
      std::this_thread::sleep_until(order.deadline);
      tried.end = Tried::End::TimeOver;
    } else {
      tried.peak = 50_MiB, tried.end = Tried::End::Fits;
    }
    return tried;
  };
  const Advice advice = advice_on(asked, answer);
  const Row* quick = nullptr;
  for (const Row& row : advice.rows) {
    if (row.name.starts_with("--image-size 16")) quick = &row;
  }
  ASSERT_NE(quick, nullptr);
  EXPECT_EQ(quick->basis, Basis::Tried) << quick->note;
  EXPECT_TRUE(quick->fits.value_or(false));
}

// The options' values in the order in which they were tried, as "16 32 bf16". A number takes a MiB for each of its
// units, of which 100 are there. The program as it is takes longer than half of what is then left.
std::string order_tried(const std::vector<Choice>& choices) {
  AdviseQuestion asked = question(100_MiB, 0.5);
  asked.target = {"dcgan"};
  std::string order;
  advice_on(asked, [&](const TryOrder& one) {
    Tried tried;
    tried.prediction.emplace(), tried.choices = choices;
    std::uint64_t takes = 200;
    if (one.trial == nullptr) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
    } else {
      const std::string& value = one.trial->options.front().value;
      order += (order.empty() ? "" : " ") + value;
      if (value.find_first_not_of("0123456789") == std::string::npos) takes = std::stoull(value);
    }
    tried.peak = 1_MiB * takes;
    tried.end = tried.peak <= asked.memory ? Tried::End::Fits : Tried::End::RanOut;
    return tried;
  });
  return order;
}

TEST(Adviser, NumbersAreSearchedFromTheSmallestAndBeforeWords) {
  const Choice words{"precision", 2, {1, 2}, {"bf16", "fp32"}};
  const Choice sizes{"image-size", 200, {16, 32, 64, 128, 200}};
  EXPECT_EQ(order_tried({sizes, words, {"micro-batch", 200, {1, 200}}}), "16 32 64 128 bf16 1");
  EXPECT_EQ(order_tried({{"max-channels", 200, {120, 200}}}), "120") << "all others take more";
}

// The program as it is takes all the time, but its options are known early. The second option is slow.
TEST(Adviser, OptionsAreTriedWhereThePlainProgramTakesTooLong) {
  AdviseQuestion asked = question(100_MiB, 0.5);
  asked.target = {"dcgan"};
  std::string order;
  const Advice advice = advice_on(asked, [&](const TryOrder& one) {
    Tried tried;
    tried.end = Tried::End::TimeOver;
    if (one.trial == nullptr) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      tried.choices = {{"image-size", 64, {16, 64}}, {"max-channels", 512, {32, 512}}, {"tile", 9, {1, 9}}};
      one.choices_known(tried.choices);
      order += "plain ";
    } else if (one.trial->options.front().name == "image-size") {
      tried.peak = 50_MiB, tried.end = Tried::End::Fits, tried.prediction.emplace();
    }
    if (one.trial != nullptr) order += one.trial->options.front().name + " ";
    if (tried.end == Tried::End::TimeOver) std::this_thread::sleep_until(one.deadline);
    return tried;
  });
  EXPECT_EQ(order, "image-size max-channels plain ");
  ASSERT_FALSE(advice.rows.empty());
  EXPECT_EQ(advice.rows.front().name, "--image-size 16: fits; others were not tried");
  EXPECT_EQ(advice.rows.front().peak, 50_MiB);
  EXPECT_FALSE(advice.plain.peak);
}

TEST(Adviser, ARunThatTimeEndedIsNotTried) {
  const AdviseQuestion asked = question(280_MiB);
  const Advice advice = advice_on(asked, [&](const TryOrder& order) {
    Tried tried = recorded(asked.memory);
    if (order.trial != nullptr) tried.end = Tried::End::TimeOver;
    return tried;
  });
  EXPECT_EQ(find(advice, "half_precision")->basis, Basis::NotTried);
  EXPECT_TRUE(find(advice, "half_precision")->note.starts_with("not tried: the time limit"));
}

TEST(Adviser, ARemedyUnderWhichTheProgramFailsSaysWhy) {
  const AdviseQuestion asked = question(280_MiB);
  const Advice advice = advice_on(asked, [&](const TryOrder& order) {
    Tried tried = recorded(asked.memory);
    if (order.trial != nullptr && order.trial->id == "half_precision")
      tried.end = Tried::End::Failed, tried.error = "RuntimeError: no bf16 here";
    return tried;
  });
  EXPECT_EQ(find(advice, "half_precision")->note, "tried, and the program failed: RuntimeError: no bf16 here");
  EXPECT_FALSE(find(advice, "half_precision")->fits);
  EXPECT_TRUE(find(advice, "gradient_checkpointing")->peak);
}

TEST(Adviser, ACastUnderWhichNothingRanIsNotTried) {
  const AdviseQuestion asked = question(280_MiB);
  const Advice advice = advice_on(asked, [&](const TryOrder& order) {
    Tried tried = recorded(asked.memory);
    tried.facts.cast.reset();
    if (order.trial != nullptr) tried.end = Tried::End::Fits;
    return tried;
  });
  const Row* row = find(advice, "half_precision");
  EXPECT_EQ(row->basis, Basis::NotTried);
  EXPECT_TRUE(row->note.starts_with("not tried: no forward pass came under it.")) << row->note;
  EXPECT_FALSE(row->fits || row->peak);
  EXPECT_TRUE(find(advice, "gradient_checkpointing")->fits.value_or(false));
}

TEST(Adviser, ThePlanIsMadeForWhatTheOtherProcessesLeave) {
  const AdviseQuestion fits = question(280_MiB + kOthers);
  const Advice roomy = advice_on(fits, [&](const TryOrder&) { return recorded(fits.memory); });
  EXPECT_EQ(find(roomy, "ullage_run")->fits, true);
  EXPECT_EQ(find(roomy, "ullage_run")->peak, fits.memory);

  const AdviseQuestion tight = question(60_MiB + kOthers);
  const Advice advice = advice_on(tight, [&](const TryOrder&) { return recorded(tight.memory); });
  const Row* plan = find(advice, "ullage_run");
  EXPECT_EQ(plan->fits, false);
  EXPECT_EQ(plan->peak, planned_alone(tight.memory).least + kOthers)
      << "the whole tree's, as `ullage run --memory` counts";
}

struct FewerLevers : testing::Test {
  // In the first a plan recomputes and moves, in the second it does one of them.
  static constexpr Bytes kBoth = 270_MiB + 1_B + kOthers, kOneLever = 290_MiB + kOthers;

  static Advice advice_in(Bytes memory) {
    const AdviseQuestion asked = question(memory);
    return advice_on(asked, [&](const TryOrder&) { return recorded(asked.memory); });
  }
};

TEST_F(FewerLevers, APlanOfBothIsAlsoMadeWithoutEach) {
  for (const Bytes memory : {kBoth, kOneLever}) {
    const Advice advice = advice_in(memory);
    const Row* plan = find(advice, "ullage_run");
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->fits, true);
    const bool uses_both = plan->name.find(" 0 ") == std::string::npos;
    EXPECT_EQ(uses_both, memory == kBoth) << plan->name << " in " << memory.count;
    for (const char* id : {"plan_without_moves", "plan_without_recomputes", "plan_of_state"})
      EXPECT_EQ(find(advice, id) != nullptr, uses_both) << id << " in " << memory.count;
  }
}

TEST_F(FewerLevers, ItsLineRecordsPlansAndRuns) {
  const Advice advice = advice_in(kBoth);
  const Row* row = find(advice, "plan_without_recomputes");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->basis, Basis::Planned);
  EXPECT_EQ(row->fits, true);
  EXPECT_TRUE(row->name.starts_with("plan that recomputes nothing: 0 values recomputed, ")) << row->name;
  const std::string memory = std::to_string(advice.memory.count),
                    left = std::to_string((advice.memory - kOthers).count);
  EXPECT_EQ(row->action, "ullage run --record take.ullage --memory " + memory +
                             " -- python train.py; ullage plan --memory " + left +
                             " --levers hold,spill,state --out plan.json take.ullage; ullage run --plan plan.json "
                             "--memory " +
                             memory + " -- python train.py");
}

// The steps are 2 s as the program is and 1 s under bf16, with Ullage; without it they are 4 s.
TEST(Adviser, TimesAreThoseOfTheRunThatTheRowIsAbout) {
  AdviseQuestion asked = question(290_MiB + kOthers);
  asked.machine = 64_GiB;
  const auto answer = [&](const TryOrder& order) {
    Tried tried = recorded(asked.memory);
    const bool half = order.trial != nullptr && order.trial->id == "half_precision";
    tried.step = Seconds{order.plainly ? (order.lean_malloc ? 5.0 : 4.0) : (half ? 1.0 : 2.0)};
    tried.facts.process = advise::Facts::Process{tried.peak, {}, *tried.step};
    if (half) tried.end = Tried::End::Fits;
    return tried;
  };
  const Advice advice = advice_on(asked, answer);
  EXPECT_DOUBLE_EQ(find(advice, "half_precision")->more_time.value_or(9), 1.0 / 4 - 1);
  EXPECT_DOUBLE_EQ(find(advice, "gradient_checkpointing")->more_time.value_or(9), 2.0 / 4 - 1);
  EXPECT_DOUBLE_EQ(find(advice, "lean_malloc")->more_time.value_or(9), 5.0 / 4 - 1);
  EXPECT_DOUBLE_EQ(find(advice, "ullage_run")->more_time.value_or(9),
                   (1 + planned_alone(asked.memory).more_time) * 2 / 4 - 1)
      << "its own cost is on top of the program as it is under Ullage";

  // Without room for a run without Ullage, all is compared with the program as it is under it.
  asked.machine = 1_MiB;
  const Advice no_room = advice_on(asked, answer);
  EXPECT_DOUBLE_EQ(find(no_room, "half_precision")->more_time.value_or(9), 1.0 / 2 - 1);
  EXPECT_FALSE(find(no_room, "lean_malloc")->more_time);
}

// A program on a card of 2 GiB that needs `needs`. Its plan is found, or not.
Advice advice_on_card(Bytes needs, const Tried& planned) {
  AdviseQuestion asked = question(2_GiB);
  asked.device = "cuda:2GiB", asked.card = *read_dry_card(asked.device), asked.seconds = Seconds{600};
  return advice_on(asked, [&](const TryOrder& order) {
    if (order.planned) {
      EXPECT_EQ(order.trial, nullptr);
      return planned;
    }
    Tried tried;
    tried.end = needs <= asked.memory ? Tried::End::Fits : Tried::End::RanOut;
    tried.peak = tried.tensors = needs;
    tried.facts = training();
    return tried;
  });
}

TEST(Adviser, OnACardThePlanIsARow) {
  Tried planned;
  planned.end = Tried::End::Fits, planned.peak = 1900_MiB, planned.moved_out = 3_GiB, planned.locked = 2_GiB;
  planned.plan.emplace(), planned.plan->recomputes = 7, planned.plan->spills = 2;
  const Advice advice = advice_on_card(3_GiB, planned);
  const Row* row = find(advice, "ullage_run");
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->fits.value_or(false));
  EXPECT_EQ(row->peak, 1900_MiB);
  EXPECT_NE(row->note.find("2.00 GiB of host memory was locked"), std::string::npos) << row->note;
  EXPECT_EQ(row->name, "plan: 7 ops recomputed, 2 tensors moved");
  EXPECT_EQ(row->action, "ullage run --device cuda --memory 2GiB -- python train.py");
  EXPECT_EQ(find(advice_on_card(1_GiB, planned), "ullage_run"), nullptr) << "it fits as it is";

  planned.end = Tried::End::RanOut, planned.error = "a budget of 2300 MiB is needed";
  const Advice too_much = advice_on_card(3_GiB, planned);
  row = find(too_much, "ullage_run");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->fits, false);
  EXPECT_EQ(row->note, planned.error);
}

TEST(Adviser, RunsNoSetTwice) {
  const std::string all = "gradient_checkpointing+set_to_none+half_precision";
  std::map<std::string, int> runs;
  const Advice advice = advice_on(question(280_MiB), [&](const TryOrder& order) {
    Tried tried = recorded(280_MiB);
    tried.prediction.reset();
    tried.facts.keeps_zeroed_gradients = advise::Place{"train.py", 30};
    if (order.trial != nullptr && !order.plainly) ++runs[order.trial->id];
    if (order.trial != nullptr && order.trial->id == all) tried.end = Tried::End::Fits, tried.peak = 200_MiB;
    return tried;
  });
  const Row* row = find(advice, all);
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->fits.value_or(false));
  EXPECT_EQ(runs["gradient_checkpointing+set_to_none"], 1) << "alone, and as the larger set without half precision";
  for (const auto& [id, count] : runs) EXPECT_EQ(count, 1) << id;
}

}  // namespace
}  // namespace ullage::cli
