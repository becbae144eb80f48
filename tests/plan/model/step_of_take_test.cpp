// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/step_of_take.h"

#include "small_training.h"
#include "plan/step_text.h"
#include "ullage/plan/model/site_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace ullage::plan {
namespace {

using trace::Role;
using trace::SavedKind;
using trace::test::Mode;
using trace::test::TakeBuilder;

// A program with one parameter of 64 KiB. Each step runs `inside` first. It then trains a little: a product of the
// parameter and what `inside` returns, its backward, an update.
class RecordedProgram {
 public:
  TakeBuilder b;
  StorageId parameter;

  RecordedProgram() {
    b.mode(Mode::Grad);
    parameter = b.op1({.name = "aten::empty.memory_format", .makes = {64_KiB}});
    b.role(parameter, Role::Parameter, "net.weight");
    train(b.op1({.name = "aten::randn", .makes = {64_KiB}}));
    b.step_told();
  }
  void train(StorageId input) {
    b.mode(Mode::Grad);
    const StorageId out = b.op1({.name = "aten::mm",
                                 .reads = {input, parameter},
                                 .makes = {64_KiB},
                                 .saves = {{input, SavedKind::Activation}, {parameter, SavedKind::Parameter}}});
    b.free(out);
    b.mode(Mode::Backward);
    const StorageId gradient = b.op1({.name = "aten::mm", .reads = {input, input}, .makes = {64_KiB}});
    b.unsave(input), b.unsave(parameter);
    b.free(input);
    b.mode(Mode::NoGrad);
    b.role(gradient, Role::Gradient);
    b.op({.name = "aten::add_.Tensor", .reads = {gradient}, .writes = {parameter}});
    b.free(gradient);
    b.mode(Mode::Grad);
  }
  void step(const std::function<StorageId()>& inside) {
    train(inside());
    b.step_told();
  }
};

Result<Step> step_in(trace::Take take, std::size_t which = 1) {
  const trace::TakeMeaning meaning = trace::understand(take);
  return step_of(take, meaning, which);
}
Step made(const RecordedProgram& program, std::size_t which = 1) {
  Result<Step> step = step_in(program.b.take(), which);
  EXPECT_TRUE(step.ok()) << step.error().text();
  return *step;
}
// Returns the lines of the step before the training.
std::string begin_of(const Step& step) {
  std::string text = StepText(step).all();
  return text.substr(0, text.find("mm reads"));
}

// ---- values, ops, gaps

TEST(StepOfTake, HasAValueForEveryWriteToAStorage) {
  RecordedProgram p;
  p.step([&] {
    const StorageId in = p.b.allocate(16_KiB);
    const StorageId x = p.b.op1({.name = "aten::relu", .reads = {in}, .makes = {64_KiB}, .scratch = {8_KiB}});
    p.b.op({.name = "aten::mul_.Tensor", .reads = {in}, .writes = {x}});
    p.b.free(in);
    return x;
  });
  const Step step = made(p);
  EXPECT_EQ(StepText(step).all(),
            "+b\n"
            "relu reads b0 makes c0 rise 72 recompute b0 rise 72\n"
            "mul_.Tensor reads b0 c0 writes c1 rise 0 recompute b0 c0\n"
            "-b\n"
            "mm reads c1 a0 makes d0 rise 64 recompute c1 a0 rise 64\n"
            "-d\n"
            "mm reads c1 makes e0 rise 64\n"
            "-c\n"
            "add_.Tensor reads e0 a0 writes a1 rise 0\n"
            "-e\n");
  EXPECT_EQ(step.values[ValueIndex{2}].maker, OpIndex{0});
  EXPECT_EQ(step.values[ValueIndex{2}].overwritten_by, OpIndex{1});
  EXPECT_EQ(step.values[ValueIndex{1}].maker, kNone);
  EXPECT_EQ(step.values[ValueIndex{1}].overwritten_by, kNone);
}

TEST(StepOfTake, KnowsWhatTheStepBeforeLeft) {
  RecordedProgram p;
  std::vector<StorageId> kept;  // the outputs, which the program replaces in the middle of its next step
  const auto keeping = [&](std::vector<Bytes> sizes) {
    return [&, sizes] {
      const StorageId x = p.b.op1({.name = "aten::rand", .makes = {64_KiB}});
      for (const StorageId old : std::exchange(kept, {})) p.b.free(old);
      for (const Bytes bytes : sizes) kept.push_back(p.b.op1({.name = "aten::relu", .reads = {x}, .makes = {bytes}}));
      return x;
    };
  };
  p.step(keeping({64_KiB, 128_KiB, 64_KiB}));
  p.step(keeping({64_KiB, 128_KiB, 64_KiB}));
  p.step(keeping({64_KiB, 128_KiB}));
  const auto links = [](const Step& step) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const StorageIndex s : step.storages.ids()) {
      const StorageIndex next = step.storages[s].becomes;
      if (next == kNone || next == s) continue;
      EXPECT_EQ(step.storages[next].was, s);
      EXPECT_EQ(step.in_last_step(next), s);
      found.emplace_back(step.storages[s].in_take.value, step.storages[next].in_take.value);
    }
    return found;
  };
  const Step steady = made(p, 2);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
  for (const StorageIndex s : steady.storages.ids()) {
    const StepStorage& old = steady.storages[s];
    if (old.from_before && !old.outlives) expected.emplace_back(0, old.in_take.value);
  }
  ASSERT_EQ(expected.size(), 3u);
  const auto found = links(steady);
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].second, expected[i].second);  // in the order of birth
  EXPECT_EQ(links(made(p, 3)).size(), 1u);  // it found two of 64 KiB and leaves one
}

// The next batch is loaded while the step trains with this one. The loaded batch becomes the next one, and the next one
// becomes this one.
TEST(StepOfTake, KnowsABatchThatIsLoadedOneStepAhead) {
  RecordedProgram p;
  StorageId batch = p.b.op1({.name = "aten::rand", .makes = {256_KiB}});
  StorageId ahead = p.b.op1({.name = "aten::rand", .makes = {256_KiB}});
  const auto inside = [&] {
    const StorageId x = p.b.op1({.name = "aten::relu", .reads = {batch}, .makes = {64_KiB}});
    const StorageId loaded = p.b.op1({.name = "aten::rand", .makes = {256_KiB}});
    p.b.free(batch);
    batch = std::exchange(ahead, loaded);
    return x;
  };
  for (int i = 0; i < 3; ++i) p.step(inside);
  const Step step = made(p, 3);
  StorageIndex one = kNone, two = kNone, three = kNone;  // this batch, the next one, the one that the step loads
  for (const StorageIndex s : step.storages.ids()) {
    if (step.storages[s].bytes != 256_KiB) continue;
    (step.storages[s].from_before ? (step.storages[s].outlives ? two : one) : three) = s;
  }
  EXPECT_EQ(step.in_next_step(three), two);
  EXPECT_EQ(step.in_next_step(two), one);
  EXPECT_EQ(step.in_last_step(one), two);
}

TEST(StepOfTake, AnOpRisesByWhatItTellsToTakeOutsideThePool) {
  RecordedProgram p;
  p.b.charge(1_MiB);  // before the step, so its ops do not count it
  p.step([&] {
    const StorageId in = p.b.allocate(16_KiB);
    p.b.charge(2_MiB), p.b.discharge(2_MiB);  // between ops
    const OpId op = p.b.open({.name = "aten::convolution_backward", .reads = {in}});
    p.b.charge(32_KiB);
    const StorageId scratch = p.b.allocate(8_KiB);
    p.b.free(scratch);
    p.b.discharge(32_KiB);
    const StorageId more = p.b.allocate(36_KiB);
    p.b.free(more);
    p.b.close(op);
    const StorageId x = p.b.op1({.name = "aten::relu", .reads = {in}, .makes = {64_KiB}});
    p.b.free(in);
    return x;
  });
  const Step step = made(p);
  EXPECT_EQ(step.ops[OpIndex{0}].name, "aten::convolution_backward");
  EXPECT_EQ(step.ops[OpIndex{0}].rise, 40_KiB);
  EXPECT_EQ(step.ops[OpIndex{1}].rise, 64_KiB);
}

TEST(StepOfTake, NamesADistinctStorageOnceInTheOrderOfTheArguments) {
  RecordedProgram p;
  p.step([&] {
    const StorageId x = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    const StorageId y = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    p.b.op({.name = "aten::swap", .reads = {y, x, y}, .writes = {x, y}, .makes = {4_KiB}});
    return y;
  });
  const Step step = made(p);
  EXPECT_EQ(StepText(step).op(OpIndex{2}), "swap reads c0 b0 writes c1 b1 makes d0 rise 4");
  SiteKey key("aten::swap");
  for (int i = 0; i < 5; ++i) key.add(6, std::vector<std::int64_t>{2048});
  EXPECT_EQ(step.ops[OpIndex{2}].key, key.value());
}

TEST(StepOfTake, MakesNoValueOfAViewThatAnOpReturns) {
  RecordedProgram p;
  p.step([&] {
    const StorageId x = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    p.b.op({.name = "aten::view", .reads = {x}});
    return x;
  });
  trace::Take take = p.b.take();
  for (trace::OpDetail& one : take.details) {
    if (one.uses.size() == 1 && one.uses[0].how == trace::TensorUse::How::Read) {
      one.uses.push_back({one.uses[0].storage, trace::TensorUse::How::Output, 6, {1, 2048}});
    }
  }
  EXPECT_EQ(StepText(*step_in(take)).op(OpIndex{1}), "view reads b0 unread b0 rise 0");
}

TEST(StepOfTake, PutsDeathsOfOthersWithinAnOpBehindIt) {
  RecordedProgram p;
  p.step([&] {
    const StorageId x = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    const OpId op = p.b.open({.name = "aten::work", .reads = {x}});
    p.b.free(x);
    const StorageId scratch = p.b.allocate(4_KiB);
    p.b.free(scratch);
    const StorageId more = p.b.allocate(2_KiB);
    const StorageId kept = p.b.allocate(1_KiB);
    p.b.free(more);
    p.b.close(op);
    p.b.free(kept);
    return p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
  });
  const Step step = made(p);
  EXPECT_EQ(begin_of(step),
            "randn makes b0 rise 8 recompute rise 8\n"
            "work reads b0 hides c rise 4\n"
            "-b\n"
            "-c\n"
            "randn makes d0 rise 8 recompute rise 8\n");
  EXPECT_FALSE(step.storages[StorageIndex{2}].movable);
}

TEST(StepOfTake, CountsOpsInsideOthersToTheOutermost) {
  RecordedProgram p;
  p.step([&] {
    const OpId outer = p.b.open({.name = "aten::cat"});
    const StorageId x = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    p.b.close(outer);
    return x;
  });
  EXPECT_EQ(begin_of(made(p)), "cat hides b rise 8\n");
}

TEST(StepOfTake, TellsWhatAStorageIs) {
  RecordedProgram p;
  StorageId state, unused, dies;
  p.step([&] {
    state = p.b.allocate(64_KiB), unused = p.b.allocate(63_KiB), dies = p.b.allocate(1_KiB);
    return p.b.op1({.name = "aten::randn", .makes = {64_KiB}});
  });
  p.step([&] {
    p.b.free(dies);
    return p.b.op1({.name = "aten::randn", .makes = {64_KiB}});
  });
  const Step step = made(p, 2);
  ASSERT_EQ(step.storages.size(), 6u);
  const auto is = [&](std::uint64_t i, StorageId in_take, bool from_before, bool outlives, bool movable) {
    const StepStorage& one = step.storages[StorageIndex{i}];
    return one.in_take == in_take && one.from_before == from_before && one.outlives == outlives &&
           one.movable == movable;
  };
  EXPECT_TRUE(is(0, p.parameter, true, true, true));
  EXPECT_TRUE(is(1, state, true, true, true));
  EXPECT_TRUE(is(2, dies, true, false, false));
  EXPECT_TRUE(is(3, step.storages[StorageIndex{3}].in_take, false, false, true));
  EXPECT_EQ(step.storages[StorageIndex{0}].name, "net.weight");
  EXPECT_EQ(step.storages[StorageIndex{0}].category, trace::Category::Parameters);
  EXPECT_EQ(step.storages[StorageIndex{3}].name, "aten::randn");
  EXPECT_EQ(step.storages[StorageIndex{5}].category, trace::Category::Gradients);
  EXPECT_EQ(step.level, 64_KiB + 64_KiB + 63_KiB + 1_KiB);
  EXPECT_NE(step.storages[StorageIndex{2}].in_take, unused);
}

// ---- what can be recomputed

TEST(StepOfTake, RunsAgainWhatTheForwardPassMade) {
  RecordedProgram p;
  p.step([&] {
    p.b.mode(Mode::NoGrad);
    const StorageId in = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});  // evaluation
    p.b.mode(Mode::Grad);
    const StorageId x = p.b.op1({.name = "aten::relu", .reads = {in}, .makes = {8_KiB}});
    const StorageId y = p.b.op1({.name = "mine::relu", .reads = {x}, .makes = {8_KiB}});
    p.b.free(p.b.op1({.name = "aten::_to_copy", .makes = {8_KiB}}));  // copies a tensor from outside the pool
    p.b.op({.name = "aten::add_.Tensor", .reads = {x}, .writes = {y}});
    const StorageId outside = p.b.allocate(1_KiB);
    p.b.op({.name = "aten::zero_", .writes = {outside}});
    p.b.op({.name = "aten::max.dim_max", .reads = {x}, .writes = {y}});
    return y;
  });
  EXPECT_EQ(begin_of(made(p)),
            "randn makes b0 rise 8\n"
            "relu reads b0 makes c0 rise 8 recompute b0 rise 8\n"
            "relu reads c0 makes d0 rise 8\n"
            "_to_copy makes e0 rise 8\n"
            "-e\n"
            "add_.Tensor reads c0 d0 writes d1 rise 0 recompute c0 d0\n"
            "+f\n"
            "zero_ reads f0 writes f1 rise 0\n"
            "max.dim_max reads c0 d1 writes d2 rise 0\n");
}

TEST(StepOfTake, RunsNoOpAgainThatFailedOrWasSliced) {
  for (const bool failed : {true, false}) {
    RecordedProgram p;
    std::uint64_t op = 0;
    p.step([&] {
      op = p.b.ops();
      return p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    });
    trace::Take take = p.b.take();
    (failed ? take.details[op].failed : take.details[op].sliced) = true;
    EXPECT_EQ(begin_of(*step_in(take)), "randn makes b0 rise 8\n");
  }
}

TEST(StepOfTake, RunsBlankPaperAgainOnlyWhereAllOfItIsWrittenOver) {
  const auto begin = [](const std::function<void(RecordedProgram&, StorageId)>& use) {
    RecordedProgram p;
    p.step([&] {
      const StorageId x = p.b.op1({.name = "aten::empty.memory_format", .makes = {8_KiB}});
      use(p, x);
      return x;
    });
    const std::string text = begin_of(made(p));
    return text.substr(0, text.find('\n'));
  };
  const std::string never = "empty.memory_format makes b0 rise 8", again = never + " recompute rise 8";
  EXPECT_EQ(begin([](RecordedProgram&, StorageId) {}), never);
  EXPECT_EQ(begin([](RecordedProgram& p, StorageId x) { p.b.op({.name = "aten::bernoulli_.float", .writes = {x}}); }),
            again);
  EXPECT_EQ(begin([](RecordedProgram& p, StorageId x) {
              p.b.op({.name = "aten::view", .reads = {x}});
              p.b.op({.name = "aten::zero_", .writes = {x}});
            }),
            again);
  EXPECT_EQ(begin([](RecordedProgram& p, StorageId x) {
              const StorageId y = p.b.op1({.name = "aten::relu", .reads = {x}, .makes = {8_KiB}});
              p.b.op({.name = "aten::copy_", .reads = {y}, .writes = {x}});
            }),
            never);
  EXPECT_EQ(begin([](RecordedProgram& p, StorageId x) { p.b.op({.name = "aten::add_.Scalar", .writes = {x}}); }),
            never);
  EXPECT_EQ(begin([](RecordedProgram& p, StorageId x) {
              p.b.sizes(x, {1, 2047});  // a part of it
              p.b.op({.name = "aten::zero_", .writes = {x}});
            }),
            never);
}

// A batch norm of 16 channels with these inputs. It makes 8 KiB and statistics.
struct Norm {
  bool affine = true, tracks = true, trains = true;
};
std::string norm_line(const Norm& norm) {
  RecordedProgram p;
  std::vector<StorageId> arguments;
  if (norm.affine) {
    for (int i = 0; i < 2; ++i) p.b.role(arguments.emplace_back(p.b.allocate(64_B)), Role::Parameter);
  }
  for (int i = 0; norm.tracks && i < 2; ++i) arguments.push_back(p.b.allocate(64_B));
  p.step([&] {
    const StorageId in = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    arguments.insert(arguments.begin(), in);
    const std::vector<Bytes> makes = norm.trains ? std::vector<Bytes>{8_KiB, 512_B, 512_B} : std::vector<Bytes>{8_KiB};
    p.b.op({.name = "aten::native_batch_norm", .reads = arguments, .makes = makes});
    return in;
  });
  return StepText(made(p)).op(OpIndex{1});
}

TEST(StepOfTake, RunsABatchNormAgainWithoutItsRunningStatistics) {
  EXPECT_EQ(norm_line({}),
            "native_batch_norm reads f0 b0 c0 d0 e0 makes g0 h0 i0 rise 9 recompute f0 b0 c0 rise 9 "
            "batch_norm f0 b0 c0 h0 i0 rise 9");
  EXPECT_EQ(norm_line({.tracks = false}),
            "native_batch_norm reads d0 b0 c0 makes e0 f0 g0 rise 9 recompute d0 b0 c0 rise 9 batch_norm d0 b0 c0 f0 "
            "g0 rise 9");
  // The take does not say whether b0 and c0 are running statistics or frozen parameters, so a recompute needs both
  // unchanged.
  EXPECT_EQ(norm_line({.affine = false}),
            "native_batch_norm reads d0 b0 c0 makes e0 f0 g0 rise 9 recompute d0 b0 c0 rise 9 batch_norm d0 b0 c0 f0 "
            "g0 rise 9");
  EXPECT_EQ(norm_line({.trains = false}), "native_batch_norm reads f0 b0 c0 d0 e0 makes g0 rise 8");
}

TEST(StepOfTake, RunsNothingAgainThatReadsRunningStatistics) {
  RecordedProgram p;
  std::vector<StorageId> of_norm;
  for (int i = 0; i < 4; ++i) of_norm.push_back(p.b.allocate(64_B));
  p.step([&] {
    const StorageId in = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    p.b.op({.name = "aten::native_batch_norm",
            .reads = {in, of_norm[0], of_norm[1], of_norm[2], of_norm[3]},
            .makes = {8_KiB, 64_B, 64_B}});
    p.b.op1({.name = "aten::abs", .reads = {of_norm[0]}, .makes = {64_B}});
    p.b.op1({.name = "aten::abs", .reads = {of_norm[3]}, .makes = {64_B}});
    return in;
  });
  const Step step = made(p);
  EXPECT_TRUE(step.ops[OpIndex{2}].recompute);
  EXPECT_FALSE(step.ops[OpIndex{3}].recompute);
}

TEST(StepOfTake, EstimatesTheTimeOfAnApply) {
  RecordedProgram p;
  std::uint64_t op = 0;
  p.step([&] {
    const StorageId in = p.b.op1({.name = "aten::randn", .makes = {8_KiB}});
    op = p.b.ops();
    p.b.op({.name = "aten::native_batch_norm", .reads = {in}, .makes = {8_KiB, 64_B, 64_B}});
    return in;
  });
  trace::Take take = p.b.take();
  take.details[op].took = {0.008};
  const Result<Step> step = step_in(take);
  EXPECT_EQ(step->ops[OpIndex{1}].recompute->took.count, 0.008);
  EXPECT_EQ(step->ops[OpIndex{1}].batch_norm->took.count, 0.002);
}

// ---- threads

// Thread 1 runs the op of `spec` once, in the middle of the second step.
Step with_another_thread(const trace::test::OpSpec& spec, bool around, RecordedProgram& p) {
  std::uint64_t other = 0;
  p.step([&] {
    const StorageId x = p.b.op1({.name = "aten::randn", .makes = {64_KiB}});
    if (!around) other = p.b.ops(), p.b.op(spec);
    const OpId op = p.b.open({.name = "aten::relu", .reads = {x}});
    if (around) other = p.b.ops(), p.b.op(spec);
    p.b.close(op);
    return x;
  });
  trace::Take take = p.b.take();
  take.details[other].thread = 1;
  Result<Step> step = step_in(take);
  EXPECT_TRUE(step.ok());
  return *step;
}

TEST(StepOfTake, MovesNothingOfAnotherThread) {
  RecordedProgram p;
  const Step step = with_another_thread({.name = "aten::randn", .makes = {64_KiB}}, false, p);
  EXPECT_EQ(begin_of(step),
            "randn makes b0 rise 64 recompute rise 64\n"
            "+c\n"
            "relu reads b0 rise 0\n");
  EXPECT_TRUE(step.storages[StorageIndex{1}].movable);
  EXPECT_FALSE(step.storages[StorageIndex{2}].movable);
}

TEST(StepOfTake, CountsWhatAnotherThreadMakesWhileAnOpRuns) {
  RecordedProgram p;
  const Step step = with_another_thread({.name = "aten::randn", .makes = {64_KiB}}, true, p);
  EXPECT_EQ(begin_of(step),
            "randn makes b0 rise 64 recompute rise 64\n"
            "relu reads b0 hides c rise 64\n");
}

TEST(StepOfTake, TakesWhatAnotherThreadWritesForUnknown) {
  RecordedProgram p;
  const Step step = with_another_thread({.name = "aten::zero_", .writes = {p.parameter}}, false, p);
  EXPECT_FALSE(step.storages[StorageIndex{0}].movable);
  EXPECT_EQ(StepText(step).op(OpIndex{2}), "mm reads b0 a0 makes c0 rise 64");
}

TEST(StepOfTake, RefusesABackwardPassOnAThreadOfItsOwn) {
  RecordedProgram p;
  p.step([&] { return p.b.op1({.name = "aten::randn", .makes = {64_KiB}}); });
  trace::Take take = p.b.take();
  for (trace::OpDetail& one : take.details) one.thread = one.backward ? 1 : 0;
  EXPECT_EQ(step_in(take).error().text(), "step 2 runs its forward pass on thread 0 and its backward pass on thread 1");
}

// ---- figures

TEST(StepOfTake, CountsTheSteps) {
  SmallTraining program(4);
  program.steps(3);
  trace::Take take = program.take();
  const trace::TakeMeaning meaning = trace::understand(take);
  for (std::size_t i = 0; i < take.details.size(); ++i) take.details[i].took = {1e-6};
  const Result<Step> step = step_of(take, meaning, 1);
  ASSERT_TRUE(step.ok());
  // In this order: parameters, their averages, the running mean, the first step's gradients, input, loss, and the root
  // that the last op made.
  EXPECT_EQ(step->level, 20_MiB + 20_MiB + 2_MiB + 20_MiB + 4_MiB + 4_B + 16_MiB);
  // The peak is in the backward pass of layer 1. In this order: what stays across steps, input, loss, the forward
  // pass's saved tensors, a gradient, the op's scratch of 5 MiB, the gradients that the op makes.
  EXPECT_EQ(step->peak, 42_MiB + 4_MiB + 4_B + 32_MiB + 32_MiB + 8_MiB + 5_MiB + 32_MiB + 16_MiB);
  EXPECT_EQ(step->saved, 4_MiB + 32_MiB + 32_MiB + 8_MiB);
  EXPECT_EQ(step->outside, 128_MiB);
  EXPECT_NEAR(step->in_ops.count, 1e-6 * double(step->ops.size()), 1e-12);
  EXPECT_NEAR(step->seconds.count, 1e-6 * double(meaning.steps.begins[2].value - meaning.steps.begins[1].value), 1e-12);
}

// On a card PyTorch's own allocator holds the smaller storages. They are outside the pool, and a plan's bytes are the
// pool's.
TEST(StepOfTake, CountsNoBytesOfAnotherAllocator) {
  RecordedProgram p;
  p.step([&] {
    const StorageId in = p.b.allocate(16_KiB);
    const StorageId x = p.b.op1({.name = "aten::relu", .reads = {in}, .makes = {64_KiB}, .scratch = {8_KiB}});
    p.b.free(in);
    return x;
  });
  trace::Take take = p.b.take();
  const trace::TakeMeaning meaning = trace::understand(take);
  const Step all = *step_of(take, meaning, 1);
  const Step large = *step_of(take, meaning, 1, {Kernels::Card, 64_KiB, 64_KiB});
  EXPECT_EQ(large.storages.size(), all.storages.size());
  EXPECT_EQ(large.ops[OpIndex{0}].rise, all.ops[OpIndex{0}].rise - 8_KiB);
  EXPECT_EQ(large.storages[StorageIndex{1}].bytes, Bytes{});  // `in`; the first is the parameter
  EXPECT_EQ(all.storages[StorageIndex{1}].bytes, 16_KiB);
  const Step none = *step_of(take, meaning, 1, {Kernels::Card, 1_MiB, 1_MiB});
  EXPECT_EQ(none.level + none.peak + none.overhead, Bytes{});
}

TEST(StepOfTake, CountsWhatIsKeptTwiceOnce) {
  RecordedProgram p;
  p.step([&] {
    const StorageId x = p.b.op1({.name = "aten::randn", .makes = {512_KiB}});
    p.b.save(x, SavedKind::Activation), p.b.save(x, SavedKind::Activation);
    p.b.unsave(x);
    const StorageId y = p.b.op1({.name = "aten::randn", .makes = {256_KiB}});
    p.b.save(y, SavedKind::Activation);
    p.b.free(x);
    return p.b.op1({.name = "aten::randn", .makes = {128_KiB}});
  });
  EXPECT_EQ(made(p).saved, 768_KiB);
}

TEST(StepOfTake, FindsAPeakBetweenOps) {
  RecordedProgram p;
  p.step([&] {
    p.b.free(p.b.allocate(1_MiB));
    return p.b.op1({.name = "aten::randn", .makes = {64_KiB}});
  });
  EXPECT_EQ(made(p).peak, 64_KiB + 1_MiB);
}

TEST(StepOfTake, TellsWhatThePoolTakesBeyondThat) {
  RecordedProgram p;
  p.step([&] { return p.b.op1({.name = "aten::randn", .makes = {65_KiB}}); });
  // 65 KiB take 68 KiB in pages, 3 KiB too many. The slab of the small storages was not needed.
  EXPECT_EQ(made(p).overhead, 3_KiB);
  p.step([&] {
    p.b.allocate(4_B);
    return p.b.op1({.name = "aten::randn", .makes = {64_KiB}});
  });
  EXPECT_EQ(made(p, 2).overhead, 256_KiB - 4_B);
}

// ---- the step to plan

TEST(StepOfTake, PlansTheStepThatComesMostOften) {
  RecordedProgram p;
  std::vector<std::uint64_t> firsts;
  for (const char* name : {"aten::randn", "aten::rand", "aten::randn", "aten::rand", "aten::randn", "aten::randint"}) {
    firsts.push_back(p.b.ops());
    p.step([&] { return p.b.op1({.name = name, .makes = {64_KiB}}); });
  }
  trace::Take take = p.b.take();
  take.details[firsts[0]].took = {0.5}, take.details[firsts[2]].took = {0.2}, take.details[firsts[4]].took = {0.3};
  take.details[firsts[0] + 1].took = {0.1}, take.details[firsts[2] + 1].took = {0.7},
                           take.details[firsts[4] + 1].took = {0.4};
  const trace::TakeMeaning meaning = trace::understand(take);
  const Result<Step> step = typical_step(take, meaning);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->ops[OpIndex{0}].in_take, OpId{firsts[4]});
  EXPECT_EQ(step->ops[OpIndex{0}].took.count, 0.2);
  EXPECT_EQ(step->ops[OpIndex{0}].recompute->took.count, 0.2);
  EXPECT_EQ(step->ops[OpIndex{1}].took.count, 0.1);
  EXPECT_NEAR(step->in_ops.count, 0.3, 1e-12);
  EXPECT_GE(step->seconds, step->in_ops);
}

TEST(StepOfTake, PassesOverStepsWithAGap) {
  RecordedProgram p;
  const auto plain = [&] { return p.b.op1({.name = "aten::randn", .makes = {64_KiB}}); };
  p.step(plain);
  const std::uint64_t last = p.b.ops();
  p.step(plain);
  p.step([&] {
    p.b.gap(1000);
    return plain();
  });
  trace::Take take = p.b.take();
  const trace::TakeMeaning meaning = trace::understand(take);
  EXPECT_EQ(typical_step(take, meaning)->ops[OpIndex{0}].in_take, OpId{last});
  EXPECT_EQ(step_of(take, meaning, 3).error().text(),
            "step 4 lacks events: of a long run only the first and the last part are recorded");
}

// ---- what cannot be planned

TEST(StepOfTake, RefusesAStepThatIsNotThere) {
  RecordedProgram p;
  p.step([&] { return p.b.op1({.name = "aten::randn", .makes = {64_KiB}}); });
  EXPECT_EQ(step_in(p.b.take(), 2).error().text(), "step 3 is not in the recording: it has 2 whole steps");
  RecordedProgram first;
  trace::Take take = first.b.take();
  const trace::TakeMeaning meaning = trace::understand(take);
  EXPECT_EQ(typical_step(take, meaning).error().text(),
            "the recording has no whole step after the first one; record more steps");
}

TEST(StepOfTake, RefusesAStepThatEndsWithinAnOp) {
  RecordedProgram p;
  const OpId op = p.b.open({.name = "aten::long"});
  p.b.step_told();
  p.b.close(op);
  p.step([&] { return p.b.op1({.name = "aten::randn", .makes = {64_KiB}}); });
  EXPECT_EQ(step_in(p.b.take()).error().text(), "step 2 ends within its op aten::long");
}

TEST(StepOfTake, RefusesATakeThatContradictsItself) {
  const auto refusal = [](const std::function<void(RecordedProgram&)>& harm,
                          const std::function<void(trace::Take&)>& after) {
    RecordedProgram p;
    p.step([&] {
      harm(p);
      return p.b.op1({.name = "aten::randn", .makes = {64_KiB}});
    });
    trace::Take take = p.b.take();
    after(take);
    const Result<Step> step = step_in(take);
    const std::string text = step.ok() ? "event: nothing is wrong" : step.error().text();
    EXPECT_TRUE(text.find("event ") != text.npos || step.ok()) << text;
    return text.substr(text.find(": ", text.find("event")) + 2);
  };
  const auto nothing = [](auto&) {};
  EXPECT_EQ(refusal([](RecordedProgram& p) { p.b.allocate(Bytes{UINT64_MAX}); }, nothing),
            "more than 16 TiB live at once");
  EXPECT_EQ(refusal(
                [](RecordedProgram& p) {
                  p.b.allocate(Bytes{1ull << 43});
                  p.b.allocate(Bytes{1ull << 43});
                },
                nothing),
            "more than 16 TiB live at once");
  EXPECT_EQ(refusal(
                [](RecordedProgram& p) {
                  const StorageId x = p.b.allocate(1_KiB);
                  p.b.free(x), p.b.free(x);
                },
                nothing),
            "a storage is freed that is not alive");
  EXPECT_EQ(refusal(
                [](RecordedProgram& p) {
                  const StorageId x = p.b.allocate(1_KiB);
                  p.b.free(x);
                  p.b.op({.name = "aten::late", .reads = {x}});
                },
                nothing),
            "an argument of aten::late does not live");
  EXPECT_EQ(refusal(nothing,
                    [](trace::Take& take) {
                      take.trace.events.back() = {trace::event::Allocation{StorageId{0}}, {}, {}};
                    }),
            "a storage is born twice");
}

}  // namespace
}  // namespace ullage::plan
