// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "recordings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ullage::diagnose {
namespace {

Diagnosis one(const RecordingMaker& maker, const Question& question = {"x.pickle", {}, {}}) {
  const std::vector<Diagnosis> diagnoses = sound(diagnose(maker.recording(), question));
  EXPECT_EQ(diagnoses.size(), 1u);
  return diagnoses.at(0);
}

Bytes part_of_history(const Diagnosis& diagnosis, Bar::Part::Kind kind) {
  Bytes sum;
  for (const Bar::Part& part_of_history : diagnosis.bar->parts)
    sum += part_of_history.kind == kind ? part_of_history.bytes : Bytes{};
  return sum;
}

class Snapshot : public testing::Test {
 protected:
  RecordingMaker maker;
  const trace::StackId module = maker.stack({{"torch/nn/modules/module.py", "_apply"}, {"train.py", "main"}});
  const trace::StackId forward =
      maker.stack({{"model.py", "forward"}, {"torch/nn/modules/module.py", "_call_impl"}, {"train.py", "train_step"}});
  const trace::StackId state = maker.stack(
      {{"torch/optim/adam.py", "_init_group"}, {"torch/optim/adam.py", "step"}, {"train.py", "train_step"}});
};

TEST_F(Snapshot, AtAFailureTellsTheLargestHoleAndWhoPinsTheSegments) {
  // Four segments of 100 MiB, each with 10 live MiB in its middle: 360 MiB of holes, none larger than 50 MiB.
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Address segment{0x100000000 * (i + 1)};
    maker.segment(segment, 100_MiB);
    maker.allocate(segment, 50_MiB, forward);
    maker.allocate(segment + 50_MiB, 10_MiB, forward);
    maker.allocate(segment + 60_MiB, 40_MiB, forward);
  }
  for (std::uint64_t i = 0; i < 4; ++i) {
    maker.free(Address{0x100000000 * (i + 1)});
    maker.free(Address{0x100000000 * (i + 1)} + 60_MiB);
  }
  maker.fail(200_MiB, 30_MiB, forward);
  for (std::uint64_t i = 0; i < 4; ++i) maker.free(Address{0x100000000 * (i + 1)} + 50_MiB);  // unwinding
  maker.release(Address{0x100000000});
  maker.segment(Address{0x900000000}, 300_MiB);
  const Diagnosis diagnosis = one(maker);
  EXPECT_EQ(diagnosis.headline,
            "GPU 0 refused 200.00 MiB at event 32 of 43: 40.00 MiB live, 400.00 MiB reserved, 30.00 MiB free");
  ASSERT_EQ(first(diagnosis), "fragmentation");
  EXPECT_GE(diagnosis.causes[0].confidence, 0.9);
  EXPECT_EQ(diagnosis.causes[0].evidence[0],
            "360.00 MiB were cached and 200.00 MiB asked for, but the largest hole was 50.00 MiB");
  EXPECT_EQ(
      diagnosis.causes[0].evidence[1],
      "360.00 MiB in 4 segments cannot be given back because 40.00 MiB of live blocks lie among them: 40.00 MiB by "
      "model.py:7 forward, the largest of 10.00 MiB");
  ASSERT_TRUE(diagnosis.bar);
  EXPECT_EQ(diagnosis.bar->total, 430_MiB);
  EXPECT_EQ(part_of_history(diagnosis, Bar::Part::Kind::Live), 40_MiB);
  EXPECT_EQ(part_of_history(diagnosis, Bar::Part::Kind::Stuck), 360_MiB);
  EXPECT_EQ(part_of_history(diagnosis, Bar::Part::Kind::Usable), 0_MiB);
  EXPECT_EQ(part_of_history(diagnosis, Bar::Part::Kind::Free), 30_MiB);
  EXPECT_EQ(diagnosis.facts.requested, 200_MiB);
}

TEST_F(Snapshot, NamesWhoPinsSegmentsThatAreMostlyLive) {
  // Four segments of 100 MiB, each with 20 and 34 live MiB (once 35), and holes beside them.
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Address segment{0x100000000 * (i + 1)};
    maker.segment(segment, 100_MiB);
    maker.allocate(segment, 20_MiB, module);
    maker.allocate(segment + 40_MiB, i == 0 ? 35_MiB : 34_MiB, forward);
  }
  maker.fail(150_MiB, 30_MiB, forward);
  const Diagnosis diagnosis = one(maker);
  ASSERT_EQ(first(diagnosis), "fragmentation");
  ASSERT_EQ(diagnosis.causes[0].evidence.size(), 2u);
  EXPECT_EQ(
      diagnosis.causes[0].evidence[1],
      "183.00 MiB in 4 segments cannot be given back because 217.00 MiB of live blocks lie among them: 137.00 MiB "
      "by model.py:7 forward, the largest of 35.00 MiB");
}

TEST_F(Snapshot, WithAHoleLargeEnoughIsNotFragmentation) {
  maker.segment(Address{0x100000000}, 400_MiB);
  maker.allocate(Address{0x100000000}, 100_MiB, forward);
  maker.fail(200_MiB, 0_MiB, forward);
  const Diagnosis diagnosis = one(maker);
  EXPECT_FALSE(cause(diagnosis, "fragmentation"));
  ASSERT_TRUE(cause(diagnosis, "fitting_block_unused"));
  EXPECT_EQ(cause(diagnosis, "fitting_block_unused")->evidence[0],
            "200.00 MiB were asked for, and the pool had 300.00 MiB free in one piece");
  EXPECT_TRUE(remedy(diagnosis, "one_stream"));
}

TEST_F(Snapshot, WithoutAFailureCallsPiecesWhatItsBarCallsStuck) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Address segment{0x100000000 * (i + 1)};
    maker.segment(segment, 100_MiB);
    maker.allocate(segment, 50_MiB, forward);
    maker.allocate(segment + 50_MiB, 40_MiB, forward);
  }
  for (std::uint64_t i = 0; i < 4; ++i) maker.free(Address{0x100000000 * (i + 1)});
  const Diagnosis diagnosis = one(maker, {"x.pickle", {}, trace::At::End});
  ASSERT_TRUE(cause(diagnosis, "fragmentation"));
  EXPECT_EQ(part_of_history(diagnosis, Bar::Part::Kind::Stuck), 240_MiB);
  EXPECT_EQ(cause(diagnosis, "fragmentation")->evidence[0],
            "240.00 MiB of the 400.00 MiB reserved (60 %) are holes beside live blocks, the largest of 50.00 MiB; 0 B "
            "are free segments");
  EXPECT_FALSE(cause(one(maker, {"x.pickle", {}, trace::At::Peak}), "fragmentation")) << "10 % are holes there";
}

TEST_F(Snapshot, AtTheEndLooksAtTheEnd) {
  const Address a = maker.allocate(100_MiB, forward);
  maker.fail(1_GiB, 10_MiB, forward);
  maker.free(a);
  maker.allocate(10_MiB, module);
  EXPECT_EQ(one(maker, {"", {}, trace::At::End}).peak->bytes, 10_MiB);
  EXPECT_EQ(one(maker, {"", {}, trace::At::Peak}).peak->bytes, 100_MiB);
  EXPECT_EQ(one(maker, {"", {}, trace::At::OutOfMemory}).peak->bytes, 100_MiB);
  EXPECT_TRUE(diagnose(maker.recording(), {"", 5, {}}).empty()) << "another device";
}

TEST_F(Snapshot, OfANewOptimizersStateComputesWhatOtherOptimizersSave) {
  maker.allocate(100_MiB, module);
  maker.allocate(200_MiB, state);
  maker.fail(200_MiB, 10_MiB, state);
  const Diagnosis diagnosis = one(maker);
  ASSERT_EQ(first(diagnosis), "optimizer_state");
  EXPECT_EQ(remedy(diagnosis, "plain_optimizer")->saves, 200_MiB);
  EXPECT_EQ(remedy(diagnosis, "eight_bit_optimizer")->saves, 150_MiB);
  EXPECT_FALSE(remedy(diagnosis, "foreach_false")) << "no foreach kernel in any stack";
}

TEST_F(Snapshot, SavesOnlyWhatLowersThePeakOfTheWholeRecording) {
  maker.allocate(100_MiB, module);
  const Address activation = maker.allocate(100_MiB, forward);
  maker.free(activation);
  maker.free(maker.allocate(80_MiB, state));  // the peak, if the activation were smaller
  const Diagnosis diagnosis = one(maker);
  ASSERT_EQ(diagnosis.peak->bytes, 200_MiB);
  ASSERT_TRUE(remedy(diagnosis, "smaller_batch"));
  EXPECT_EQ(remedy(diagnosis, "smaller_batch")->saves, 20_MiB);
}

TEST_F(Snapshot, OfALeakNamesThePlaceAndTheSum) {
  const trace::StackId leak = maker.stack({{"train.py", "keep_outputs"}, {"train.py", "train_step"}});
  const trace::StackId backward =
      maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}});
  maker.allocate(50_MiB, module);
  for (int step = 0; step < 8; ++step) {
    const Address activation = maker.allocate(20_MiB, forward);
    maker.allocate(10_MiB, leak);
    const Address gradient = maker.allocate(5_MiB, backward);
    maker.free(activation);
    const Address temporary =
        maker.allocate(1_MiB, maker.stack({{"torch/optim/sgd.py", "step"}, {"train.py", "train_step"}}));
    maker.free(temporary);
    maker.free(gradient);
  }
  const Diagnosis diagnosis = one(maker);
  const Cause* found = cause(diagnosis, "leak_across_steps");
  ASSERT_TRUE(found);
  EXPECT_NE(found->evidence[0].find("10.00 MiB more in each step"), std::string::npos) << found->evidence[0];
  EXPECT_NE(found->evidence[0].find("keep_outputs"), std::string::npos);
  EXPECT_GE(remedy(diagnosis, "detach")->saves, 40_MiB);
}

TEST_F(Snapshot, OfGradientsOfTheStepBeforeAsksToFreeThem) {
  const trace::StackId backward =
      maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}});
  const trace::StackId step = maker.stack({{"torch/optim/sgd.py", "step"}, {"train.py", "train_step"}});
  maker.allocate(50_MiB, module);
  maker.free(maker.allocate(20_MiB, forward));
  const Address gradient = maker.allocate(40_MiB, backward);
  maker.free(maker.allocate(1_MiB, step));
  const Address activation = maker.allocate(70_MiB, forward);  // the peak, because the old gradient is still live
  maker.free(gradient);
  maker.free(activation);
  maker.allocate(40_MiB, backward);
  maker.free(maker.allocate(1_MiB, step));
  const Diagnosis diagnosis = one(maker);
  EXPECT_EQ(diagnosis.peak->bytes, 160_MiB);
  ASSERT_TRUE(cause(diagnosis, "gradients"));
  ASSERT_TRUE(remedy(diagnosis, "free_gradients"));
  EXPECT_EQ(remedy(diagnosis, "free_gradients")->saves, 40_MiB);
}

TEST_F(Snapshot, OfAnEvaluationThatKeepsItsGraphAsksForNoGrad) {
  const trace::StackId validation =
      maker.stack({{"model.py", "forward"}, {"torch/nn/modules/module.py", "_call_impl"}, {"train.py", "validate"}});
  maker.allocate(50_MiB, module);
  std::vector<Address> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(maker.allocate(10_MiB, validation));
  for (Address address : kept) maker.free(address);
  const Diagnosis diagnosis = one(maker);
  ASSERT_EQ(first(diagnosis), "validation_with_graph");
  EXPECT_GE(remedy(diagnosis, "no_grad")->saves, 100_MiB);
}

TEST_F(Snapshot, OfAnEvaluationWithoutAGraphDoesNot) {
  const trace::StackId validation =
      maker.stack({{"model.py", "forward"}, {"torch/nn/modules/module.py", "_call_impl"}, {"train.py", "validate"}});
  maker.allocate(50_MiB, module);
  Address before = maker.allocate(10_MiB, validation);
  for (int i = 0; i < 20; ++i) {
    const Address next = maker.allocate(10_MiB, validation);
    maker.free(before);
    before = next;
  }
  EXPECT_FALSE(cause(one(maker), "validation_with_graph"));
  for (int i = 0; i < 10; ++i) maker.allocate(1_MiB, validation);  // a tenth of what it made, or less, is its result
  for (int i = 0; i < 100; ++i) maker.free(maker.allocate(10_MiB, validation));
  EXPECT_FALSE(cause(one(maker, {"", {}, trace::At::End}), "validation_with_graph"));
}

TEST_F(Snapshot, OfACheckpointBesideItsModelNamesTheTwins) {
  const trace::StackId load = maker.stack({{"torch/serialization.py", "_load"}, {"train.py", "resume"}});
  for (std::uint64_t i = 1; i < 6; ++i) maker.allocate(10_MiB * i, module);
  for (std::uint64_t i = 1; i < 6; ++i) maker.allocate(10_MiB * i, load);
  const Diagnosis diagnosis = one(maker);
  ASSERT_TRUE(cause(diagnosis, "checkpoint_loaded_twice"));
  EXPECT_EQ(remedy(diagnosis, "drop_checkpoint")->saves, 150_MiB);
}

TEST_F(Snapshot, OfLogitsAndScoresComputesBoth) {
  const trace::StackId loss = maker.stack({{"torch/nn/functional.py", "cross_entropy"}, {"train.py", "train_step"}});
  const trace::StackId scores = maker.stack({{"torch/nn/functional.py", "softmax"},
                                             {"model/attention.py", "forward"},
                                             {"torch/nn/modules/module.py", "_call_impl"},
                                             {"train.py", "train_step"}});
  maker.allocate(80_MiB, loss);
  maker.allocate(100_MiB, scores);
  const Diagnosis diagnosis = one(maker);
  ASSERT_TRUE(cause(diagnosis, "logits"));
  ASSERT_TRUE(cause(diagnosis, "attention_matrix"));
  EXPECT_EQ(remedy(diagnosis, "chunked_loss")->saves, 70_MiB);
  EXPECT_EQ(remedy(diagnosis, "fused_attention")->saves, 100_MiB);
}

TEST_F(Snapshot, OfAForeachOptimizerComputesItsLists) {
  const trace::StackId lists = maker.stack(
      {{"torch/optim/adam.py", "_multi_tensor_adam"}, {"torch/optim/adam.py", "step"}, {"train.py", "train_step"}});
  maker.allocate(100_MiB, module);
  const Address list = maker.allocate(100_MiB, lists);
  maker.free(list);
  maker.allocate(1_MiB, forward);
  const Diagnosis diagnosis = one(maker);
  ASSERT_TRUE(cause(diagnosis, "optimizer_temporaries"));
  EXPECT_EQ(remedy(diagnosis, "foreach_false")->saves, 99_MiB) << "then the forward pass stands highest";
}

TEST_F(Snapshot, OfAnotherOptimizersTemporariesDoesNotPromiseForeach) {
  const trace::StackId own =
      maker.stack({{"optimizers.py", "step"}, {"torch/optim/optimizer.py", "wrapper"}, {"train.py", "train_step"}});
  maker.allocate(100_MiB, module);
  maker.free(maker.allocate(100_MiB, own));
  const Diagnosis diagnosis = one(maker);
  EXPECT_FALSE(cause(diagnosis, "optimizer_temporaries"));
  EXPECT_FALSE(remedy(diagnosis, "foreach_false"));
}

TEST_F(Snapshot, ThatSparesSegmentsUnderExpandableSegmentsSaysHowMuch) {
  // The sizes grow from step to step, so every segment is too small for the next one.
  maker.allocate(40_MiB, module);
  for (std::uint64_t i = 1; i < 12; ++i) maker.free(maker.allocate(100_MiB + 20_MiB * i, forward));
  const Diagnosis diagnosis = one(maker);
  ASSERT_TRUE(cause(diagnosis, "cached_unused"));
  EXPECT_FALSE(cause(diagnosis, "fragmentation")) << "free segments are no pieces: the pool can give them back";
  ASSERT_TRUE(remedy(diagnosis, "expandable_segments"));
  EXPECT_EQ(remedy(diagnosis, "expandable_segments")->basis, Basis::Simulated);
  EXPECT_GT(remedy(diagnosis, "expandable_segments")->saves, 500_MiB);
}

TEST_F(Snapshot, OfAnEndStateAloneTellsWhatIsUnused) {
  maker.segment(Address{0x100000000}, 400_MiB);
  maker.segment(Address{0x200000000}, 100_MiB);
  maker.allocate(Address{0x200000000}, 60_MiB, module);
  trace::Recording recording = maker.recording();
  recording.devices[0].events.clear();
  const std::vector<Diagnosis> diagnoses = sound(diagnose(recording, {}));
  ASSERT_EQ(diagnoses.size(), 1u);
  ASSERT_TRUE(cause(diagnoses[0], "cached_unused"));
  EXPECT_EQ(remedy(diagnoses[0], "empty_cache")->saves, 400_MiB);
  ASSERT_TRUE(diagnoses[0].bar);
  EXPECT_EQ(part_of_history(diagnoses[0], Bar::Part::Kind::Usable), 400_MiB);
  EXPECT_EQ(part_of_history(diagnoses[0], Bar::Part::Kind::Stuck), 40_MiB);
  EXPECT_NE(diagnoses[0].to_know_more.find("only the end state was recorded"), std::string::npos);
}

TEST_F(Snapshot, AsksForWhatTheRecordingLacksAndNoMore) {
  const auto told = [&](bool watched) {
    return sound(diagnose(maker.recording(), {"x.pickle", {}, {}, watched}))[0].to_know_more;
  };
  maker.allocate(900_MiB, trace::StackId{});
  maker.fail(500_MiB, 10_MiB);
  EXPECT_NE(told(false).find("have no stack"), std::string::npos) << told(false);
  EXPECT_EQ(told(true), "") << "the watch has the stacks that it can have";
  maker.forget();
  maker.allocate(10_MiB, module);
  maker.fail(500_MiB, 10_MiB, module);
  EXPECT_EQ(told(false).find("most blocks are older than the history: torch.cuda.memory._record"), 0u) << told(false);
  EXPECT_NE(told(true).find("a larger --events"), std::string::npos) << told(true);
  EXPECT_EQ(told(true).find("_record_memory_history"), std::string::npos) << told(true);
}

TEST_F(Snapshot, OfStacksThatSayNothingAsksForNoStacks) {
  maker.allocate(900_MiB, maker.stack({{"??", "start_thread"}}));
  maker.fail(500_MiB, 10_MiB, module);
  EXPECT_EQ(sound(diagnose(maker.recording(), {"x.pickle", {}, {}}))[0].to_know_more, "");
}

TEST_F(Snapshot, UnderAutocastTellsTheCopiesOfTheWeightsApart) {
  const trace::StackId cast = maker.stack({{"??", "at::_ops::to_dtype::call(at::Tensor const&)"},
                                           {"??", "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&)"},
                                           {"model.py", "forward"},
                                           {"torch/nn/modules/module.py", "_call_impl"},
                                           {"train.py", "train_step"}});
  const trace::StackId backward =
      maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}});
  for (int i = 0; i < 4; ++i) maker.allocate(100_MiB, module);
  std::vector<Address> made;
  for (int i = 0; i < 4; ++i) made.push_back(maker.allocate(50_MiB, cast));
  made.push_back(maker.allocate(50_MiB, cast));  // a fifth of this size has no weight of its own: an argument's cast
  made.push_back(maker.allocate(70_MiB, cast));  // no weight has twice this size
  made.push_back(maker.allocate(300_MiB, forward));
  maker.fail(200_MiB, 10_MiB, backward);
  const Diagnosis diagnosis = one(maker);
  Bytes copies, activations;
  for (const Bar::Part& part : diagnosis.bar->parts) {
    if (part.name == "weight copies") copies += part.bytes;
    if (part.name == "activations") activations += part.bytes;
  }
  EXPECT_EQ(copies, 200_MiB);
  EXPECT_EQ(activations, 420_MiB);
  ASSERT_TRUE(cause(diagnosis, "weight_copies"));
  EXPECT_EQ(remedy(diagnosis, "no_weight_copies")->saves, 200_MiB);
  ASSERT_TRUE(remedy(diagnosis, "smaller_batch"));
  EXPECT_EQ(remedy(diagnosis, "smaller_batch")->saves, 210_MiB) << "no smaller batch makes the copies less";
  EXPECT_FALSE(remedy(diagnosis, "half_precision")) << "it runs under autocast already";
}

TEST_F(Snapshot, WhereAutocastEndsItsCopiesAreFreed) {
  const trace::StackId exit = maker.stack({{"/x/torch/amp/autocast_mode.py", "__exit__"}, {"train.py", "main"}});
  const Address copy = maker.allocate(100_MiB, forward);
  maker.allocate(100_MiB, forward);
  maker.free(copy, exit);
  const Diagnosis diagnosis = one(maker);
  ASSERT_TRUE(cause(diagnosis, "weight_copies"));
  EXPECT_EQ(cause(diagnosis, "weight_copies")->evidence[0].find("100.00 MiB of 200.00 MiB live (50 %)"), 0u);
  EXPECT_FALSE(remedy(diagnosis, "half_precision"));
}

TEST_F(Snapshot, OfAForwardThatKeepsItsGraphAsksForNoGradOrCheckpoints) {
  maker.allocate(10_MiB, module);
  for (int layer = 0; layer < 32; ++layer) maker.allocate(10_MiB, forward);
  const Diagnosis kept = one(maker);
  ASSERT_TRUE(cause(kept, "graph_kept"));
  EXPECT_NE(cause(kept, "graph_kept")->evidence[1].find("in 32 storages from model.py:7 forward"), std::string::npos);
  EXPECT_EQ(remedy(kept, "no_grad")->saves, 320_MiB);
  EXPECT_TRUE(remedy(kept, "gradient_checkpointing"));
  maker.allocate(10_MiB,
                 maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}}));
  EXPECT_FALSE(cause(one(maker), "graph_kept")) << "a backward pass comes";
}

TEST_F(Snapshot, OfAForwardWithoutAGraphFindsNoneKept) {
  maker.allocate(10_MiB, module);
  Address before = maker.allocate(10_MiB, forward);
  for (int layer = 0; layer < 32; ++layer) {
    const Address next = maker.allocate(10_MiB, forward);
    maker.free(before);
    before = next;
  }
  EXPECT_FALSE(cause(one(maker), "graph_kept"));
}

TEST_F(Snapshot, OfManyTensorsFromOneLineNamesIt) {
  const trace::StackId buffer = maker.stack({{"memory.py", "push"}, {"agent.py", "play"}});
  maker.allocate(10_MiB, module);
  for (int i = 0; i < 800; ++i) maker.allocate(2_MiB, buffer);
  const Diagnosis diagnosis = one(maker);
  ASSERT_TRUE(cause(diagnosis, "many_kept"));
  EXPECT_EQ(cause(diagnosis, "many_kept")->evidence[0],
            "800 tensors of together 1.56 GiB (99 % of what is live) are from one line, and all are alive: memory.py:7 "
            "push");
  EXPECT_TRUE(remedy(diagnosis, "data_on_host"));
}

TEST_F(Snapshot, OfAnOptimizerOfOnesOwnTakesItsOldStateForState) {
  // The recording begins between two steps: parameters, gradients and two moments are there without a stack.
  const trace::StackId own = maker.stack({{"optimizer.py", "step"}, {"train.py", "train_step"}});
  const trace::StackId backward =
      maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}});
  std::vector<Address> moments;
  for (int i = 0; i < 3; ++i) maker.allocate(100_MiB, {});
  for (int i = 0; i < 6; ++i) moments.push_back(maker.allocate(100_MiB, {}));
  maker.forget();
  std::vector<Address> gradients;
  for (int i = 0; i < 3; ++i) gradients.push_back(maker.allocate(100_MiB, backward));
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 2; ++k) {
      maker.allocate(100_MiB, own);
      maker.free(moments[static_cast<std::size_t>(2 * i + k)]);
    }
  }
  const Diagnosis diagnosis = one(maker, {"x.pickle", {}, trace::At::Peak});
  Bytes state, found_gradients;
  for (const Bar::Part& part : diagnosis.bar->parts) {
    if (part.name == "optimizer state") state += part.bytes;
    if (part.name == "gradients") found_gradients += part.bytes;
  }
  EXPECT_EQ(state, 700_MiB) << "six moments, and the first new one";
  EXPECT_EQ(found_gradients, 300_MiB);
}

TEST_F(Snapshot, OfAnOptimizerThatReplacesTheParameterTooTellsItApart) {
  const trace::StackId own = maker.stack({{"optimizer.py", "step"}, {"train.py", "train_step"}});
  const trace::StackId backward =
      maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}});
  std::vector<Address> held;  // parameter, two moments; for each of four layers
  for (int i = 0; i < 12; ++i) held.push_back(maker.allocate(100_MiB, {}));
  maker.forget();
  std::vector<Address> gradients;
  for (int i = 0; i < 4; ++i) gradients.push_back(maker.allocate(100_MiB, backward));
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 3; ++k) maker.allocate(100_MiB, own);
    for (int k = 0; k < 3; ++k) maker.free(held[static_cast<std::size_t>(3 * i + k)]);
  }
  for (const Address gradient : gradients) maker.free(gradient);
  const Diagnosis diagnosis = one(maker, {"x.pickle", {}, trace::At::End});
  std::map<std::string, Bytes> parts;
  for (const Bar::Part& part : diagnosis.bar->parts) parts[part.name] += part.bytes;
  EXPECT_EQ(parts["parameters"], 400_MiB);
  EXPECT_EQ(parts["optimizer state"], 800_MiB);
}

TEST_F(Snapshot, UnderAutocastFindsWeightsFromBeforeByTheirCopies) {
  const trace::StackId cast = maker.stack({{"??", "at::_ops::to_dtype::call(at::Tensor const&)"},
                                           {"??", "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&)"},
                                           {"model.py", "forward"},
                                           {"torch/nn/modules/module.py", "_call_impl"},
                                           {"train.py", "train_step"}});
  for (int i = 0; i < 4; ++i) maker.allocate(100_MiB, {});
  maker.allocate(300_MiB, {});
  maker.forget();
  for (int i = 0; i < 5; ++i) maker.allocate(50_MiB, cast);  // the fifth has no weight
  maker.free(maker.allocate(150_MiB, cast));                 // an argument's: no cast of a weight ends so early
  const Diagnosis diagnosis = one(maker, {"x.pickle", {}, trace::At::End});
  std::map<std::string, Bytes> parts;
  for (const Bar::Part& part : diagnosis.bar->parts) parts[part.name] += part.bytes;
  EXPECT_EQ(parts["weight copies"], 200_MiB);
  EXPECT_EQ(parts["parameters"], 400_MiB);
  EXPECT_EQ(parts["unattributed"], 300_MiB);
}

TEST_F(Snapshot, OfALeakThatIsFreedAgainTellsWhatIsLeft) {
  const trace::StackId leak = maker.stack({{"train.py", "keep_outputs"}, {"train.py", "train_step"}});
  const trace::StackId backward =
      maker.stack({{"torch/autograd/graph.py", "_engine_run_backward"}, {"train.py", "train_step"}});
  maker.allocate(50_MiB, module);
  std::vector<Address> kept;
  for (int step = 0; step < 8; ++step) {
    const Address activation = maker.allocate(20_MiB, forward);
    kept.push_back(maker.allocate(10_MiB, leak));
    const Address gradient = maker.allocate(5_MiB, backward);
    maker.free(activation);
    maker.free(maker.allocate(1_MiB, maker.stack({{"torch/optim/sgd.py", "step"}, {"train.py", "train_step"}})));
    maker.free(gradient);
  }
  for (std::size_t i = 2; i < kept.size(); ++i) maker.free(kept[i]);
  maker.allocate(100_MiB, forward);
  const Diagnosis diagnosis = one(maker, {"x.pickle", {}, trace::At::End});
  ASSERT_TRUE(cause(diagnosis, "leak_across_steps"));
  EXPECT_NE(cause(diagnosis, "leak_across_steps")->evidence[0].find(" 20.00 MiB by now"), std::string::npos)
      << cause(diagnosis, "leak_across_steps")->evidence[0];
}

TEST_F(Snapshot, OfNothingSaysThatItIsEmpty) {
  trace::Recording recording;
  const std::vector<Diagnosis> diagnoses = sound(diagnose(recording, {}));
  ASSERT_EQ(diagnoses.size(), 1u);
  EXPECT_NE(diagnoses[0].headline.find("empty"), std::string::npos);
  EXPECT_TRUE(diagnose(recording, {"", 1, {}}).empty());
}

TEST_F(Snapshot, ThatContradictsItselfIsJudgedAllTheSame) {
  maker.segment(Address{0x100000000}, 10_MiB);
  maker.allocate(Address{0x100000000}, 5_MiB, forward);
  trace::Recording recording = maker.recording();
  auto& device = recording.devices[0];
  device.segments.push_back(device.segments[0]);                                             // the same address twice
  device.segments[0].blocks[0].requested = 300_MiB;                                          // larger than its segment
  device.events.push_back({trace::record::Allocation{Address{0x5000}, 1_GiB, {}}, {}, {}});  // in no segment
  device.events.push_back(device.events[1]);  // allocated where something is live
  device.events.push_back({trace::record::Free{Address{0x999}, 1_GiB, {}}, {}, {}});
  device.events.push_back({trace::record::SegmentFree{Address{0x999}, 1_GiB, {}}, {}, {}});
  sound(diagnose(recording, {}));
}

TEST_F(Snapshot, QuotesItsNameInTheNextCommand) {
  maker.allocate(10_MiB, forward);
  EXPECT_EQ(one(maker, {"it's here.pickle", {}, {}}).next, "ullage explain 'it'\\''s here.pickle' --html page.html");
}

TEST(Profile, OfADeviceKnowsItsCapacity) {
  trace::Profile profile;
  profile.devices.emplace_back();
  trace::Profile::Device& device = profile.devices[0];
  device.type = 1, device.total = 16_GiB;
  trace::Storage storage;
  storage.bytes = 1_GiB, storage.born = {0}, storage.tensor_died = storage.died = {1};
  device.trace.storages = {storage};
  device.trace.events.push_back({trace::event::Allocation{StorageId{0}}, {}, {}});
  device.totals = false;
  const std::vector<Diagnosis> diagnoses = sound(diagnose(profile, {}));
  ASSERT_EQ(diagnoses.size(), 1u);
  EXPECT_EQ(diagnoses[0].bar->total, 16_GiB);
  EXPECT_EQ(diagnoses[0].source.kind, "kineto");
}

}  // namespace
}  // namespace ullage::diagnose
