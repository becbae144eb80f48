// SPDX-License-Identifier: Apache-2.0
#include "runtime/pooled.h"

#include "ullage/runtime/record/recorder.h"
#include "ullage/runtime/record/rehearsal_sizes.h"
#include "ullage/runtime/runtime.h"
#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/take/take_meaning.h"

#include <c10/util/Exception.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace ullage::runtime {
namespace {

using trace::Category;

// ctest runs each test of this file in its own process, because a process can have only one session.
class Recording : public testing::Test {
 protected:
  void SetUp() override {
    if (Session::current() != nullptr) GTEST_SKIP() << "a session runs in this process already; ctest runs each alone";
    Session::Settings settings;
    settings.budget = kTestBudget;
    settings.slot = &test_slot();
    settings.record_file = file_;
    ASSERT_TRUE(Session::start(std::move(settings)));
  }
  void TearDown() override { ::unlink(file_.c_str()); }

  trace::TraceFile read() const {
    std::ifstream in(file_, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    Result<trace::TraceFile> file = trace::read_trace_file(std::as_bytes(std::span(text.data(), text.size())), file_);
    if (!file) throw std::runtime_error(file.error().text());
    return std::move(*file);
  }
  trace::TraceFile finished() const {
    Session::current()->recorder()->finish();
    return read();
  }

  const std::string file_ = testing::TempDir() + "recorder-" + std::to_string(::getpid()) + ".ullage";
};

Bytes bytes_of_all(const std::vector<torch::Tensor>& tensors) {
  Bytes sum{};
  for (const torch::Tensor& one : tensors) sum += Bytes{one.nbytes()};
  return sum;
}

// Returns the bytes that are alive at the end of the take, by category.
std::array<Bytes, trace::kCategories> alive_at_the_end(const trace::Take& take, const trace::TakeMeaning& meaning) {
  std::array<Bytes, trace::kCategories> sums{};
  for (std::size_t i = 0; i < take.trace.storages.size(); ++i) {
    if (take.trace.storages[i].died < take.trace.end()) continue;
    sums[static_cast<std::size_t>(meaning.categories[i])] += take.trace.storages[i].bytes;
  }
  return sums;
}

TEST_F(Recording, KnowsWhatEachTensorOfATrainingStepIsFor) {
  SmallStep step;
  for (int i = 0; i < 3; ++i) {
    step.run();
    mark_step();
  }
  const Bytes live_peak = Session::current()->store().counts().live_peak;
  trace::TraceFile file = finished();
  ASSERT_EQ(file.takes.size(), 1u);
  trace::Take& take = file.takes.front();
  const trace::TakeMeaning meaning = trace::understand(take);
  EXPECT_EQ(meaning.steps.whole(), 3u);

  const auto sums = alive_at_the_end(take, meaning);
  const auto of = [&](Category category) { return sums[static_cast<std::size_t>(category)]; };
  const Bytes parameters = bytes_of_all(step.net->parameters());
  EXPECT_EQ(of(Category::Parameters), parameters);
  EXPECT_EQ(of(Category::Gradients), parameters);
  EXPECT_EQ(of(Category::OptimizerState), parameters * 2);
  EXPECT_EQ(of(Category::Buffers), bytes_of_all(step.net->buffers()));

  const auto peak = trace::find(take.trace, trace::levels(take.trace), trace::At::Peak);
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->live, live_peak) << "the trace counts what the pool counts";
  EXPECT_EQ(take.process.pool_live_peak, live_peak);
}

TEST_F(Recording, SeesOpsSavesAndWhatIsSavedLetGo) {
  const torch::Tensor w = torch::ones({100, 100}).requires_grad_();
  {
    const torch::Tensor x = torch::ones({20, 100});
    const torch::Tensor y = torch::mm(x, w);
    y.sum().backward();
  }
  const trace::TraceFile file = finished();
  const trace::Take& take = file.takes.front();
  std::uint64_t saves = 0, unsaves = 0;
  for (const trace::Event& event : take.trace.events) {
    saves += std::holds_alternative<trace::event::Save>(event.what);
    unsaves += std::holds_alternative<trace::event::Unsave>(event.what);
  }
  EXPECT_EQ(saves, 1u) << "mm keeps x for w's gradient, and not w, as x needs none";
  EXPECT_EQ(unsaves, saves);
  const auto& ops = take.trace.ops;
  const auto mm = std::ranges::find(ops, "aten::mm", &trace::Op::name);
  ASSERT_NE(mm, ops.end());
  const trace::OpDetail& detail = take.details[static_cast<std::size_t>(mm - ops.begin())];
  ASSERT_EQ(detail.uses.size(), 3u);
  EXPECT_EQ(detail.uses[0].sizes, (std::vector<std::int64_t>{20, 100}));
  EXPECT_EQ(detail.uses[1].sizes, (std::vector<std::int64_t>{100, 100}));
  EXPECT_EQ(detail.uses[2].how, trace::TensorUse::How::Output);
  EXPECT_EQ(take.trace.storages[detail.uses[2].storage.value].bytes, Bytes{20 * 100 * 4});
  EXPECT_TRUE(detail.grad_mode);
  EXPECT_FALSE(detail.backward);
  EXPECT_TRUE(std::ranges::any_of(take.details, [](const trace::OpDetail& one) { return one.node == "MmBackward0"; }));
}

TEST_F(Recording, NamesLayersByTheirParameters) {
  torch::nn::Linear layer(30, 20);
  name_parameter(layer->weight.const_data_ptr(), "net.head.weight");
  layer->forward(torch::ones({5, 30}));
  const trace::TraceFile file = finished();
  const trace::Take& take = file.takes.front();
  EXPECT_TRUE(std::ranges::any_of(take.roles, [](const trace::RoleSeen& one) {
    return one.role == trace::Role::Parameter && one.name == "net.head.weight";
  }));
  EXPECT_TRUE(std::ranges::any_of(take.details, [](const trace::OpDetail& one) { return one.layer == "net.head"; }));
}

TEST_F(Recording, WritesTheFileWhenARequestIsRefused) {
  const torch::Tensor held = torch::ones({1000});
  EXPECT_THROW(torch::empty({4, 1024, 1024, 1024}, torch::kByte), c10::OutOfMemoryError);
  const trace::TraceFile file = read();  // the refusal alone caused the file to be written
  const trace::Take& take = file.takes.front();
  EXPECT_EQ(take.end, trace::Take::End::OutOfMemory);
  ASSERT_FALSE(take.trace.events.empty());
  const auto refused = std::ranges::find_if(take.trace.events, [](const trace::Event& event) {
    return std::holds_alternative<trace::event::OutOfMemory>(event.what);
  });
  ASSERT_NE(refused, take.trace.events.end());
  EXPECT_EQ(std::get<trace::event::OutOfMemory>(refused->what).requested, 4_GiB);
}

TEST_F(Recording, TellsTakesPhasesAndChargesApart) {
  {
    const Take take({{"batch", 2}});
    torch::ones({200});
    mark_step();
  }
  const torch::Tensor between = torch::ones({7});
  {
    const Take take({{"batch", 3}});
    const Phase phase("sampling", {{"batch", 64}});
    const auto charged = charge_outside(1_MiB, "a picture");
    torch::ones({300});
  }
  const trace::TraceFile file = finished();
  ASSERT_GE(file.takes.size(), 2u);
  const auto with_batch = [&](std::int64_t batch) {
    return std::ranges::find_if(file.takes, [batch](const trace::Take& one) {
      return one.knobs == std::vector<Knob>{{"batch", batch}};
    });
  };
  ASSERT_NE(with_batch(2), file.takes.end());
  ASSERT_NE(with_batch(3), file.takes.end());
  const trace::Take& third = *with_batch(3);
  EXPECT_EQ(third.trace.live_before, Bytes{7 * 4}) << "what lived on from before the take";
  ASSERT_EQ(third.borders.size(), 2u);
  EXPECT_EQ(third.borders[0].phase, "sampling");
  EXPECT_EQ(third.borders[0].knobs, (std::vector<Knob>{{"batch", 64}}));
  ASSERT_EQ(third.charges.size(), 2u);
  EXPECT_EQ(third.charges[0].bytes, 1 << 20);
  EXPECT_EQ(third.charges[1].bytes, -(1 << 20));
}

TEST_F(Recording, RecordsNothingInAForkedChild) {
  torch::ones({1000});
  const pid_t child = ::fork();
  if (child == 0) {
    torch::ones({1000000});
    Session::current()->recorder()->finish();
    ::_exit(::access(file_.c_str(), F_OK) == 0 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child wrote a trace";
}

TEST_F(Recording, HoldsTogetherWhenSeveralThreadsWork) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) (torch::ones({100, 100}) * 2).sum();
    });
  }
  for (std::thread& thread : threads) thread.join();
  trace::TraceFile file = finished();
  trace::Take& take = file.takes.front();
  EXPECT_GE(take.trace.ops.size(), 4u * 200u * 3u);
  EXPECT_EQ(trace::levels(take.trace).live.back(), Bytes{}) << "all is given back";
  trace::understand(take);
}

using Takes = std::vector<std::vector<Knob>>;

TEST(RehearsalSizes, AreTheUsualOnesUnlessOthersAreChosen) {
  EXPECT_EQ(takes_of("auto", {{"batch", 128}}, {{2, 3, 4}}), (Takes{{{"batch", 2}}, {{"batch", 3}}, {{"batch", 4}}}));
  EXPECT_EQ(takes_of("batch=9,10,11", {{"batch", 128}}, {{2, 3, 4}}),
            (Takes{{{"batch", 9}}, {{"batch", 10}}, {{"batch", 11}}}));
  EXPECT_EQ(takes_of("batch=128", {{"batch", 128}}, {{2, 3, 4}}), (Takes{{{"batch", 128}}}));
}

TEST(RehearsalSizes, TriesWhatIsBelowTheUsualOnesAsItIs) {
  EXPECT_EQ(takes_of("auto", {{"batch", 1}}, {{2, 3, 4}}), (Takes{{{"batch", 1}}}));
}

TEST(RehearsalSizes, TriesOneMoreOfASideWhereTheOtherIsLeftAsItIs) {
  const std::vector<std::vector<std::int64_t>> usual = {{144, 160, 176}, {144, 160, 176}};
  const Takes wide = takes_of("auto", {{"width", 512}, {"height", 128}}, usual);
  ASSERT_EQ(wide.size(), 4u);
  EXPECT_EQ(wide[0], (std::vector<Knob>{{"width", 144}, {"height", 128}}));
  EXPECT_EQ(wide[3], (std::vector<Knob>{{"width", 192}, {"height", 128}}));
  EXPECT_EQ(takes_of("auto", {{"width", 128}, {"height", 144}}, usual).back(),
            (std::vector<Knob>{{"width", 128}, {"height", 192}}));
  EXPECT_EQ(takes_of("auto", {{"width", 128}, {"height", 96}}, usual), (Takes{{{"width", 128}, {"height", 96}}}));
  EXPECT_EQ(takes_of("auto", {{"width", 144}, {"height", 144}}, usual).size(), 9u);
}

TEST(RehearsalSizes, MakesAGridOfTwoKnobs) {
  const Takes takes = takes_of("batch=2,3;size=32,48", {{"batch", 8}, {"size", 64}}, {{2, 3, 4}, {16, 32, 48}});
  ASSERT_EQ(takes.size(), 4u);
  EXPECT_EQ(takes[1], (std::vector<Knob>{{"batch", 2}, {"size", 48}}));
  EXPECT_EQ(takes_of("size=32", {{"batch", 8}, {"size", 64}}, {{2, 3, 4}, {16, 32, 48}}),
            (Takes{{{"batch", 8}, {"size", 32}}}));
}

}  // namespace
}  // namespace ullage::runtime
