// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/sequence.h"

#include "training.h"

#include "ullage/trace/meaning/levels.h"

#include <algorithm>
#include <functional>

namespace ullage::predict {
namespace {

Sequence same(const trace::TraceFile& file) {
  const auto result = compare(file);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
  if (!result.ok()) return {};
  const auto* difference = std::get_if<Difference>(&*result);
  EXPECT_EQ(difference, nullptr) << difference->here << " / " << difference->there;
  return difference != nullptr ? Sequence{} : std::get<Sequence>(*result);
}
std::string differ(const trace::TraceFile& file) {
  const auto result = compare(file);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
  if (!result.ok()) return {};
  const auto* difference = std::get_if<Difference>(&*result);
  EXPECT_NE(difference, nullptr) << "they are the same";
  return difference == nullptr ? "" : difference->here + " / " + difference->there;
}
std::string wrong(const trace::TraceFile& file) {
  const auto result = compare(file);
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().text();
}
trace::Take at_target(const trace::TraceFile& file, std::int64_t batch) {
  const auto found = at(file, same(file), {{"batch", batch}});
  const auto* off = std::get_if<Difference>(&found);
  EXPECT_EQ(off, nullptr) << off->here;
  return off != nullptr ? trace::Take{} : std::get<trace::Take>(found);
}

// Takes at batch 2, 3 and 4. The last one runs `change` where the others run `usual`.
trace::TraceFile with_last(const Does& usual, const Does& change) {
  return takes_by_batch([&](Program& p) {
    const StorageId data = p.op("load", 100 * std::uint64_t(p.knob("batch")));
    (p.knob("batch") == 4 ? change : usual)(p);
    p.free(data);
  });
}

TEST(Compare, KnowsStoragesAgainInAllTakes) {
  const trace::TraceFile file = takes_by_batch([](Program& p) { train(p); }, {3, 2, 4});
  const Sequence sequence = same(file);
  EXPECT_EQ(sequence.order, (std::vector<std::size_t>{1, 0, 2}));
  ASSERT_EQ(sequence.partners.size(), 3u);
  for (const auto& partners : sequence.partners) {
    for (std::size_t i = 0; i < partners.size(); ++i) EXPECT_EQ(partners[i], StorageId{i});
  }
  EXPECT_TRUE(sequence.unordered.empty());
}

TEST(Compare, TellsTheFirstDifferenceInWords) {
  const Does op = [](Program& p) { p.op("aten::relu", 8); };
  EXPECT_EQ(differ(with_last(op, [](Program& p) { p.op("aten::tanh", 8); })), "aten::relu begins / aten::tanh begins");
  EXPECT_EQ(differ(with_last(op, [](Program& p) { p.make(8); })),
            "aten::relu begins / the program, outside of ops, makes 8 B");
  const Does one = [](Program& p) {
    const StorageId a = p.op("a", 8);
    p.op("b", 16);
    p.free(a);
    p.op("c", 8);
  };
  const Does another = [](Program& p) {
    p.op("a", 8);
    const StorageId b = p.op("b", 16);
    p.free(b);
    p.op("c", 8);
  };
  EXPECT_EQ(differ(with_last(one, another)),
            "the program, outside of ops, frees 8 B / the program, outside of ops, "
            "frees 16 B, of another storage");
}

TEST(Compare, TakesDeathsInARowAsASet) {
  const auto program = [](Program& p) {
    std::vector<StorageId> all;
    for (int i = 0; i < 5; ++i) all.push_back(p.op("a", 8 * std::uint64_t(p.knob("batch"))));
    p.save(all[0]);
    p.save(all[0]);
    std::rotate(all.begin(), all.begin() + p.knob("batch"), all.end());
    if (p.knob("batch") == 3) p.unsave(StorageId{0});
    for (const StorageId id : all) p.free(id);
    if (p.knob("batch") != 3) p.unsave(StorageId{0});
    p.unsave(StorageId{0});
    p.op("b", 8);
  };
  same(takes_by_batch(program));
  const auto one_less = [&](Program& p) {
    const StorageId a = p.op("a", 8 * std::uint64_t(p.knob("batch"))), b = p.op("b", 8);
    p.free(a);
    if (p.knob("batch") == 3) p.free(b);
    p.op("c", 8);
  };
  EXPECT_EQ(differ(takes_by_batch(one_less)),
            "c begins / the program, outside of ops, frees 8 B, which the first take does not do");
}

TEST(Compare, SaysTheStepAndThePhase) {
  const Does usual = [](Program& p) {
    p.op("forward", 8);
    p.step_end();
    p.op("forward", 8);
    p.phase("sampling");
    p.op("draw", 8);
  };
  const Does other_step = [](Program& p) {
    p.op("forward", 8);
    p.step_end();
    p.op("sideways", 8);
  };
  const Does other_phase = [](Program& p) {
    p.op("forward", 8);
    p.step_end();
    p.op("forward", 8);
    p.phase("sampling");
    p.op("paint", 8);
  };
  EXPECT_EQ(differ(with_last(usual, other_step)), "forward begins, step 2 / sideways begins, step 2");
  EXPECT_EQ(differ(with_last(usual, other_phase)), "draw begins, in sampling / paint begins, in sampling");
}

TEST(Compare, LooksAtTensorsModesRolesAndSaves) {
  const auto reading = [](std::vector<std::int64_t> sizes, bool first) {
    return [=](Program& p) {
      const StorageId a = p.op("a", 8), b = p.op("b", 8);
      p.op("use", 8, {reads(first ? a : b, sizes)});
    };
  };
  EXPECT_EQ(differ(with_last(reading({2}, true), reading({2}, false))),
            "use begins / use begins, with another storage");
  EXPECT_EQ(differ(with_last(reading({2}, true), reading({2, 1}, true))),
            "use begins / use begins, with tensors of other ranks");
  same(with_last(reading({2}, true), reading({2}, true)));
  const auto role = [](trace::Role what) {
    return [=](Program& p) {
      p.role(p.op("a", 8), what);
      p.op("b", 8);
    };
  };
  EXPECT_EQ(differ(with_last(role(trace::Role::Parameter), role(trace::Role::Gradient))),
            "b begins / b begins, where they first use different parameters");
  const Does saved = [](Program& p) { p.save(p.op("a", 8)); };
  EXPECT_EQ(differ(with_last(saved, [](Program& p) { p.unsave(p.op("a", 8)); })),
            "the program, outside of ops, saves 8 B for the backward pass / the program, outside of ops, gives up 8 B "
            "saved for the backward pass");
  const Does border = [](Program& p) { p.step_end(); };
  EXPECT_NE(differ(with_last(border, [](Program&) {})), "");
}

TEST(Compare, CountsNeitherTimesNorThreads) {
  trace::TraceFile file = takes_by_batch([](Program& p) { train(p); });
  for (trace::OpDetail& detail : file.takes[1].details) {
    detail.thread = 7;
    detail.took = Seconds{3};
  }
  for (trace::Event& event : file.takes[1].trace.events) event.at->count += 99;
  same(file);
  file.takes[1].details[2].grad_mode = true;
  EXPECT_EQ(differ(file), "conv begins, step 1 / conv begins, step 1, with another setting of the gradient mode");
}

TEST(Compare, PassesOverWhatAProcessMakesOnceAndKeeps) {
  // The first take makes a table of 4 B and keeps it; in the other takes it exists from the beginning.
  const auto program = [](Program& p) {
    const bool first = p.knob("batch") == 2;
    StorageId table{};
    if (!first) table = p.from_before(4);
    const StorageId data = p.op("load", 100 * std::uint64_t(p.knob("batch")));
    const OpId op = p.begin("look_up", {reads(data, {p.knob("batch")})});
    if (first) table = p.make(4);
    const StorageId scratch = p.make(8 * std::uint64_t(p.knob("batch")));
    p.free(scratch);
    p.end(op);
    p.op("again", 4, {reads(table, {1})});
    p.free(data);
  };
  const trace::TraceFile file = takes_by_batch(program);
  const trace::Take target = at_target(file, 100);
  const trace::Levels levels = trace::levels(target.trace);
  EXPECT_EQ(*std::ranges::max_element(levels.live), 10000_B + 4_B + 800_B);
}

TEST(Compare, LeavesAloneWhatIsFromBeforeAndNotTouched) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    if (p.knob("batch") > 2) p.from_before(1000);
    train(p);
  });
  EXPECT_EQ(at_target(file, 9).trace.live_before, 0_B);
}

TEST(Compare, RefusesTakesThatAreNoGrid) {
  const Does run = [](Program& p) { train(p); };
  EXPECT_EQ(wrong(takes_by_batch(run, {2, 3})),
            "'batch' has 2 sizes in the takes; at least 3 are needed, two to fit and one to check");
  EXPECT_EQ(wrong(takes_by_batch(run, {2, 3, 4, 3})), "there are two takes at batch=3; keep one");
  EXPECT_EQ(wrong(takes({{}, {}, {}}, [](Program& p) { p.op("a", 8); })),
            "the takes vary no size, so there is nothing to predict from; vary one with --vary");
  EXPECT_EQ(wrong(takes({{{"a", 1}}, {{"b", 2}}}, [](Program& p) { p.op("a", 8); })),
            "one take varies a=1, another one b=2; vary the same sizes in all of them");
  EXPECT_EQ(wrong(takes_by_batch([](Program& p) {
              train(p);
              if (p.knob("batch") == 3) p.refuse(100);
            })),
            "the program ran out of memory at batch=3, a size to predict from; vary smaller sizes");
}

TEST(Compare, RefusesAKnobThatChangesNothing) {
  EXPECT_EQ(
      wrong(takes_by_batch([](Program& p) { p.op("a", 8); })),
      "'batch' changes nothing: every size is the same at all its values; does the program use {batch} where it is "
      "given?");
  std::vector<std::vector<Knob>> grid;
  for (const std::int64_t batch : {2, 3, 4}) {
    for (const std::int64_t size : {32, 48, 64}) grid.push_back({{"batch", batch}, {"size", size}});
  }
  const auto ignores = [](const std::string& one) {
    return [one](Program& p) { p.op("a", 8 * std::uint64_t(p.knob(one))); };
  };
  EXPECT_EQ(wrong(takes(grid, ignores("size"))).substr(0, 23), "'batch' changes nothing");
  EXPECT_EQ(wrong(takes(grid, ignores("batch"))).substr(0, 22), "'size' changes nothing");
}

TEST(Compare, DoesNotKnowWhatWasLost) {
  EXPECT_EQ(differ(takes_by_batch([](Program& p) {
              train(p);
              if (p.knob("batch") == 3) p.lose(1234);
            })),
            "the recording at batch=3 lost 1,234 events / the recording at batch=3 lost 1,234 events");
}

// Within one op, two threads make 1,000 and 3,000 B an image each, and each frees its first. One of the threads runs no
// op of its own.
void in_parallel(Program& p, bool worker_first) {
  const auto batch = std::uint64_t(p.knob("batch"));
  const OpId op = p.begin("attention");
  const auto by_worker = [&] {
    const StorageId a = p.make_on_worker(1000 * batch);
    p.free(a);
    return p.make_on_worker(3000 * batch);
  };
  const auto by_op = [&] {
    const StorageId a = p.make(1000 * batch);
    p.free(a);
    return p.make(3000 * batch);
  };
  const StorageId first = worker_first ? by_worker() : by_op();
  const StorageId second = worker_first ? by_op() : by_worker();
  p.end(op);
  p.free(std::min(first, second));
  p.free(std::max(first, second));
}

TEST(Compare, TakesParallelRegionsAsSets) {
  const trace::TraceFile file = takes_by_batch([](Program& p) { in_parallel(p, p.knob("batch") == 3); });
  const Sequence sequence = same(file);
  ASSERT_EQ(sequence.unordered.size(), 1u);
  EXPECT_EQ(sequence.unordered[0].begin, EventId{1});
  EXPECT_EQ(sequence.unordered[0].end, EventId{7});
  const trace::Take target = at_target(file, 10);
  const trace::Levels levels = trace::levels(target.trace);
  EXPECT_EQ(*std::ranges::max_element(levels.live), 80000_B);  // the worst order: all births before all deaths
  const Prediction found = predicted(predict(file, at_batch(10)));
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_EQ(found.pool_peak, 80000_B);
}

TEST(Compare, StaysExactWhereThePeakIsOutsideOfParallelRegions) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    in_parallel(p, p.knob("batch") == 3);
    train(p);
  });
  const Prediction found = predicted(predict(file, at_batch(10)));
  EXPECT_EQ(found.law, Law::Exact);
  EXPECT_EQ(found.pool_peak.count, train_peak(10));
}

// Within one op, each of two threads makes a buffer. The second thread makes it by an op of its own.
void with_a_workers_op(Program& p, bool worker_first) {
  const auto batch = std::uint64_t(p.knob("batch"));
  const OpId op = p.begin("attention", {}, 1);
  const auto by_worker = [&] {
    const OpId empty = p.begin("aten::empty", {}, 2);
    const StorageId a = p.make(1000 * batch);
    p.end(empty, {gives(a, {p.knob("batch"), 250})});
    p.free(a);
  };
  if (worker_first) by_worker();
  p.free(p.make(1000 * batch));
  if (!worker_first) by_worker();
  p.end(op);
  p.op("after", 8 * batch);
}

TEST(Predict, LeavesOutOpsOfWorkerThreads) {
  const trace::TraceFile file = takes_by_batch([](Program& p) { with_a_workers_op(p, p.knob("batch") == 3); });
  EXPECT_NE(differ(file), "");
  const Prediction found = predicted(predict(file, at_batch(10)));
  EXPECT_EQ(found.law, Law::Bound);
  EXPECT_EQ(found.pool_peak, 20000_B);
  EXPECT_EQ(found.peak_op, "attention");
  EXPECT_EQ(found.take.trace.ops.size(), 2u);
  EXPECT_EQ(found.take.details[1].end, EventId{8});
}

TEST(Compare, TellsWhereThreadsDoNotDoTheSame) {
  const trace::TraceFile file = takes_by_batch([](Program& p) {
    const OpId op = p.begin("attention");
    for (std::int64_t i = 0; i < p.knob("batch"); ++i) p.make_on_worker(8);
    p.end(op);
  });
  EXPECT_EQ(differ(file),
            "attention makes 8 B / attention makes 8 B, on threads without an op of their own, with another "
            "number of allocations or frees");
}

TEST(At, TakesThePhasesMost) {
  trace::TraceFile file = takes_by_batch([](Program& p) {
    const auto batch = std::uint64_t(p.knob("batch"));
    p.op("train", 1000 * batch);
    p.phase("sampling", {{"batch", 64}});
    const StorageId drawn = p.op("draw", 5000 * batch);
    p.op("look", 4, {reads(drawn, {p.knob("batch"), 1250})});
    p.phase_end();
    p.op("train", 1000 * batch);
  });
  file.at = {{"batch", 128}};
  const trace::Take target = at_target(file, 128);
  EXPECT_EQ(target.trace.storages[0].bytes, 128000_B);
  EXPECT_EQ(target.trace.storages[1].bytes, 320000_B);
  EXPECT_EQ(target.details[2].uses[0].sizes[0], 64);
  EXPECT_EQ(target.trace.storages[3].bytes, 128000_B);
  EXPECT_EQ(predicted(predict(file, at_batch(128))).law, Law::Exact);
  EXPECT_EQ(at_target(file, 20).trace.storages[1].bytes, 100000_B);
  EXPECT_EQ(at_target(file, 256).trace.storages[1].bytes, 320000_B);
  EXPECT_EQ(predicted(predict(file, at_batch(256))).law, Law::Exact);
}

TEST(At, WritesTheSizesOfTensors) {
  const trace::Take target = at_target(takes_by_batch([](Program& p) { train(p); }), 1000);
  EXPECT_EQ(target.details[2].uses[0].sizes, (std::vector<std::int64_t>{1000, 10000}));
  EXPECT_EQ(target.details[2].uses[1].sizes, (std::vector<std::int64_t>{262144}));
}

// The gradient of a convolution's weights. If `more`, it makes one more block, as when the kernel divides the batch
// among threads.
void weight_gradient(Program& p, bool more, std::uint64_t more_bytes = 500000) {
  const std::int64_t batch = p.knob("batch");
  const auto images = std::uint64_t(batch);
  const StorageId input = p.op("load", images * 64 * 64 * 64 * 4);
  const StorageId weight = p.op("weights", 128 * 64 * 16 * 4);
  const StorageId output = p.op("forward", images * 128 * 32 * 32 * 4);
  const OpId back =
      p.begin("aten::convolution_backward",
              {reads(output, {batch, 128, 32, 32}), reads(input, {batch, 64, 64, 64}), reads(weight, {128, 64, 4, 4})});
  const StorageId a = p.make(images * 4096);
  const StorageId b = p.make(7777);
  const StorageId x = more ? p.make(more_bytes) : StorageId{};
  const StorageId c = p.make(images * 512 + 64);
  p.free(a);
  p.free(b);
  if (more) p.free(x);
  p.free(c);
  const StorageId gradient = p.make(128 * 64 * 16 * 4);
  p.end(back, {gives(gradient, {128, 64, 4, 4})});
}

TEST(Varying, LeavesOutScratchThatAKernelTakesAtSomeSizes) {
  for (const std::int64_t from : {3, 4, 2}) {
    const trace::TraceFile file = takes_by_batch([&](Program& p) { weight_gradient(p, p.knob("batch") >= from); });
    const Sequence sequence = same(file);
    EXPECT_EQ(std::ranges::count(sequence.left_out[2], true), from == 2 ? 0 : 1);
    at_target(file, 128);
  }
}

TEST(Varying, LeavesOutScratchWithoutALaw) {
  const trace::TraceFile file =
      takes_by_batch([&](Program& p) { weight_gradient(p, true, p.knob("batch") == 4 ? 400000 : 300000); });
  EXPECT_EQ(std::ranges::count(same(file).left_out[0], true), 1);
}

TEST(Varying, AnAllowanceStandsForIt) {
  const trace::TraceFile file = takes_by_batch([&](Program& p) { weight_gradient(p, p.knob("batch") >= 3); });
  const Prediction found = predicted(predict(file, at_batch(10)));
  EXPECT_EQ(found.law, Law::Bound);
  Program real({{"batch", 10}});
  weight_gradient(real, true);
  const trace::Levels levels = trace::levels(real.take().trace);
  EXPECT_GE(found.pool_peak, *std::ranges::max_element(levels.live));
  EXPECT_EQ(found.peak_op, "aten::convolution_backward");
  Question largest = at_batch(10);
  largest.memory = 1_GiB;
  EXPECT_EQ(predicted(predict(file, largest)).largest.at(0).law, Law::Bound);
}

TEST(Varying, IsExactWhereTheAllowanceDoesNotLiftThePeak) {
  const trace::TraceFile file = takes_by_batch([&](Program& p) {
    weight_gradient(p, p.knob("batch") >= 3);
    p.free(p.op("large", 10000000));
  });
  const Prediction found = predicted(predict(file, at_batch(10)));
  EXPECT_EQ(found.law, Law::Exact);
  EXPECT_EQ(found.peak_op, "large");
}

TEST(Varying, IsADifferenceWhereItIsMoreThanTheKernelWouldTake) {
  const trace::TraceFile file = takes_by_batch([&](Program& p) { weight_gradient(p, p.knob("batch") >= 3, 50000000); });
  EXPECT_EQ(differ(file), "aten::convolution_backward frees 8.00 KiB / aten::convolution_backward makes 1.56 KiB");
}

}  // namespace
}  // namespace ullage::predict
