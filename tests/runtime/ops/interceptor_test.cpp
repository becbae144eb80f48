// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/interceptor.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/_lazy_clone.h>
#include <c10/core/impl/COW.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace ullage::runtime {
namespace {

struct Seen {
  std::string name;
  store::OpSignature signature;
  std::vector<StorageUse> inputs;
  std::size_t outputs = 0;
  bool returned = false;
};

// Keeps the ops that it hears of. Throws at the op that `refuses` names.
class Notes final : public OpListener {
 public:
  std::string refuses;
  std::vector<Seen> seen;  // in the order of end()
  int open = 0;
  bool outer_seen = false;

  void begin(OpCall& call) override {
    const std::lock_guard lock(mutex_);
    if (call.name == refuses) throw std::runtime_error("refused " + refuses);
    outer_seen |= call.outer != nullptr;
    ++open;
  }
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override {
    const std::lock_guard lock(mutex_);
    --open;
    seen.push_back(
        {std::string(call.name), call.signature, {call.inputs.begin(), call.inputs.end()}, outputs.size(), returned});
  }

  int count(const std::string& name) const {
    return static_cast<int>(std::count_if(seen.begin(), seen.end(), [&](const Seen& s) { return s.name == name; }));
  }
  const Seen& only(const std::string& name) const {
    if (count(name) != 1) throw std::runtime_error(name + " was seen " + std::to_string(count(name)) + " times");
    return *std::find_if(seen.begin(), seen.end(), [&](const Seen& s) { return s.name == name; });
  }

 private:
  std::mutex mutex_;
};

class InterceptorTest : public ::testing::Test {
 protected:
  void install(Interceptor::Way wanted = Interceptor::Way::DispatchKey) {
    Result<std::unique_ptr<Interceptor>> made = Interceptor::install({&first, &notes}, wanted);
    if (!made) GTEST_SKIP() << made.error().text();
    guard = std::move(*made);
    guard->enable();
  }
  void SetUp() override { install(); }
  void TearDown() override {
    guard.reset();
    EXPECT_EQ(notes.open, 0) << "each begin() has its end()";
    EXPECT_EQ(first.open, 0);
    EXPECT_EQ(Interceptor::current(), nullptr);
  }

  Notes first;
  Notes notes;
  std::unique_ptr<Interceptor> guard;
};

Address begin_of(const torch::Tensor& t) { return {reinterpret_cast<std::uint64_t>(t.storage().data())}; }

TEST_F(InterceptorTest, TellsTheStoragesOfAnOp) {
  const torch::Tensor a = torch::ones({3, 4});
  const torch::Tensor b = torch::ones({4});
  notes.seen.clear();
  const torch::Tensor c = a + b;
  const Seen& add = notes.only("aten::add.Tensor");
  ASSERT_EQ(add.inputs.size(), 2u);
  EXPECT_EQ(add.inputs[0].begin, begin_of(a));
  EXPECT_EQ(add.inputs[0].size, 48_B);
  EXPECT_EQ(add.inputs[1].begin, begin_of(b));
  EXPECT_EQ(add.inputs[1].storage.get(), b.storage().unsafeGetStorageImpl());
  EXPECT_FALSE(add.inputs[0].written);
  EXPECT_EQ(add.outputs, 1u);
  EXPECT_TRUE(add.returned);
}

TEST_F(InterceptorTest, TellsAStorageOnceAndWhatIsWritten) {
  torch::Tensor a = torch::ones({8});
  notes.seen.clear();
  a.slice(0, 0, 4).add_(a.slice(0, 4, 8));
  const Seen& add = notes.only("aten::add_.Tensor");
  ASSERT_EQ(add.inputs.size(), 1u);
  EXPECT_TRUE(add.inputs[0].written);
  EXPECT_EQ(add.inputs[0].size, 32_B);
  std::vector<torch::Tensor> many(40, a);
  for (int i = 0; i < 20; ++i) many.push_back(torch::ones({2}));
  notes.seen.clear();
  (void)torch::cat(many);
  EXPECT_EQ(notes.only("aten::cat").inputs.size(), 21u);
  torch::_foreach_add_(many, 1);
  for (const StorageUse& use : notes.only("aten::_foreach_add_.Scalar").inputs) EXPECT_TRUE(use.written);
}

TEST_F(InterceptorTest, SignsEqualCallsEqually) {
  const torch::Tensor a = torch::ones({3, 4});
  notes.seen.clear();
  (void)(a + a);
  (void)(torch::ones({3, 4}) + torch::ones({3, 4}));
  (void)(torch::ones({4, 3}) + torch::ones({4, 3}));
  (void)(a.to(torch::kDouble) + a.to(torch::kDouble));
  (void)(a * a);
  (void)(torch::ones({12}) + torch::ones({12}));
  std::vector<std::uint64_t> shapes, kinds;
  for (const Seen& s : notes.seen) {
    if (s.name != "aten::add.Tensor" && s.name != "aten::mul.Tensor") continue;
    shapes.push_back(s.signature.shapes);
    kinds.push_back(s.signature.kind);
  }
  ASSERT_EQ(shapes.size(), 6u);
  EXPECT_EQ(shapes[0], shapes[1]);
  EXPECT_EQ(std::set(shapes.begin(), shapes.end()).size(), 5u);
  EXPECT_EQ(kinds[0], kinds[1]);
  EXPECT_EQ(kinds[0], kinds[2]) << "other sizes";
  EXPECT_EQ(std::set(kinds.begin(), kinds.end()).size(), 4u) << "another type, op, number of dimensions";
}

TEST_F(InterceptorTest, SeesThePartsOfCompositeOps) {
  const torch::Tensor a = torch::ones({3, 4});
  notes.seen.clear();
  (void)torch::linear(torch::matmul(a, a.t()), torch::ones({2, 3}), torch::ones({2}));
  EXPECT_EQ(notes.count("aten::matmul"), 0);
  EXPECT_EQ(notes.count("aten::mm"), 1);
  EXPECT_EQ(notes.count("aten::addmm"), 1);
  EXPECT_FALSE(notes.outer_seen);
}

TEST_F(InterceptorTest, SeesBackward) {
  const torch::Tensor w = torch::ones({4, 4}, torch::requires_grad());
  const torch::Tensor loss = torch::mm(w, w).tanh().sum();
  notes.seen.clear();
  loss.backward();
  EXPECT_EQ(notes.count("aten::mm"), 2);
  EXPECT_EQ(notes.count("aten::tanh_backward"), 1);
}

TEST_F(InterceptorTest, EndsAnOpThatThrew) {
  const torch::Tensor a = torch::ones({3, 4});
  notes.seen.clear();
  EXPECT_THROW((void)torch::mm(a, a), c10::Error);
  EXPECT_FALSE(notes.only("aten::mm").returned);
  EXPECT_EQ(notes.only("aten::mm").outputs, 0u);
  EXPECT_EQ(notes.open, 0);
  EXPECT_TRUE(Interceptor::sees_this_thread()) << "the key is let in again";
}

TEST_F(InterceptorTest, AListenersExceptionReachesTheProgramAndTheOpDoesNotRun) {
  torch::Tensor a = torch::ones({3});
  notes.refuses = "aten::add_.Scalar";
  notes.seen.clear();
  first.seen.clear();
  try {
    a.add_(1);
    a.add_(torch::ones({3}));
    notes.refuses = "aten::add_.Tensor";
    a.add_(torch::ones({3}));
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 14), "refused aten::") << error.what();
  }
  ASSERT_FALSE(first.seen.empty());
  EXPECT_FALSE(first.seen.back().returned) << "the listener before the one that threw is told of the end";
  EXPECT_EQ(first.open, 0);
  notes.refuses.clear();
}

TEST_F(InterceptorTest, AThreadTakesPartOnceItIsArmed) {
  notes.seen.clear();
  std::thread([this] {
    (void)torch::ones({3}).exp();
    EXPECT_FALSE(Interceptor::sees_this_thread());
    EXPECT_EQ(notes.count("aten::exp"), 0);
    Interceptor::arm_this_thread();
    EXPECT_TRUE(Interceptor::sees_this_thread());
    (void)torch::ones({3}).exp();
    EXPECT_EQ(notes.count("aten::exp"), 1);
  }).join();
}

TEST_F(InterceptorTest, ServesTwoThreads) {
  notes.seen.clear();
  const auto work = [] {
    Interceptor::arm_this_thread();
    const torch::Tensor w = torch::ones({8, 8}, torch::requires_grad());
    for (int i = 0; i < 50; ++i) torch::mm(w, w).sum().backward();
  };
  std::thread one(work);
  std::thread other(work);
  one.join();
  other.join();
  EXPECT_EQ(notes.count("aten::mm"), 2 * 50 * 3);
}

TEST_F(InterceptorTest, IsSilentWhenDisabled) {
  guard->disable();
  EXPECT_FALSE(Interceptor::enabled());
  notes.seen.clear();
  (void)torch::ones({3}).exp();
  EXPECT_TRUE(notes.seen.empty());
  guard->enable();
  (void)torch::ones({3}).exp();
  EXPECT_EQ(notes.count("aten::exp"), 1);
  const UnseenOps unseen;
  (void)torch::ones({3}).exp();
  EXPECT_EQ(notes.count("aten::exp"), 1);
  EXPECT_FALSE(Interceptor::sees_this_thread());
}

TEST_F(InterceptorTest, LeavesCopyOnWriteStoragesAlone) {
  const torch::Tensor a = torch::ones({1000});
  const torch::Tensor b = at::_lazy_clone(a);
  ASSERT_TRUE(c10::impl::cow::is_cow_data_ptr(b.storage().data_ptr()));
  notes.seen.clear();
  (void)torch::add(b, b);
  EXPECT_EQ(notes.only("aten::add.Tensor").inputs[0].begin, begin_of(a));
  EXPECT_TRUE(c10::impl::cow::is_cow_data_ptr(b.storage().data_ptr()));
}

TEST_F(InterceptorTest, PassesOverWhatHasNoBytesOnTheCpu) {
  const torch::Tensor meta = torch::ones({3, 4}, torch::kMeta);
  const torch::Tensor sparse = torch::eye(3).to_sparse();
  notes.seen.clear();
  (void)torch::add(meta, meta);
  EXPECT_TRUE(notes.only("aten::add.Tensor").inputs.empty());
  (void)torch::cat({torch::empty({0}), torch::ones({2})});
  EXPECT_EQ(notes.only("aten::cat").inputs.size(), 1u);
  EXPECT_EQ(torch::mm(sparse, torch::ones({3, 2})).sum().item<float>(), 6.0f);
  torch::Tensor none;
  EXPECT_EQ(torch::conv2d(torch::ones({1, 1, 3, 3}), torch::ones({1, 1, 2, 2}), none).sum().item<float>(), 16.0f);
}

TEST_F(InterceptorTest, KnowsTheRunningOp) {
  struct Asks final : OpListener {
    void begin(OpCall& call) override { right &= Interceptor::current() == &call && !Interceptor::sees_this_thread(); }
    void end(OpCall& call, std::span<const c10::IValue>, bool) noexcept override {
      right &= Interceptor::current() == &call;
    }
    bool right = true;
  } asks;
  guard.reset();
  Result<std::unique_ptr<Interceptor>> made = Interceptor::install({&asks});
  ASSERT_TRUE(made);
  (*made)->enable();
  (void)torch::ones({3}).exp();
  EXPECT_TRUE(asks.right);
  EXPECT_FALSE(Interceptor::install({&notes}).ok()) << "one at a time";
}

// Runs one step of a small net and returns every tensor that it leaves.
std::vector<torch::Tensor> step(bool autocast) {
  torch::manual_seed(7);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)), torch::nn::BatchNorm2d(8),
                            torch::nn::ReLU(torch::nn::ReLUOptions(true)), torch::nn::Dropout(0.3),
                            torch::nn::Flatten(), torch::nn::Linear(8 * 64, 10));
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(1e-2));
  at::autocast::set_autocast_enabled(at::kCPU, autocast);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  for (int i = 0; i < 2; ++i) {
    adam.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(torch::randn({4, 3, 8, 8})).to(torch::kFloat), torch::arange(4))
        .backward();
    adam.step();
  }
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  std::vector<torch::Tensor> left = net->parameters();
  for (const torch::Tensor& p : net->parameters()) left.push_back(p.grad());
  for (const torch::Tensor& b : net->buffers()) left.push_back(b);
  left.push_back(torch::randn({3}));
  return left;
}

void expect_equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
}

TEST_F(InterceptorTest, LeavesEveryBitAsItWas) {
  for (const bool autocast : {false, true}) {
    notes.seen.clear();
    const std::vector<torch::Tensor> with = step(autocast);
    if (autocast) {
      EXPECT_GT(notes.count("aten::_to_copy"), 0) << "the casts are seen";
    }
    EXPECT_GT(notes.count("aten::convolution_backward"), 0);
    guard->disable();
    expect_equal(with, step(autocast));
    guard->enable();
  }
}

TEST(Interceptor, FallsBackToRecordFunctionWhereTheKeyIsTaken) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto key = c10::DispatchKey::TESTING_ONLY_GenericMode;
  if (dispatcher.hasBackendFallbackForDispatchKey(key)) GTEST_SKIP() << "a test before this one took the key for good";
  const auto taken = dispatcher.registerFallback(key, c10::KernelFunction::makeFallthrough(), "somebody else");
  Notes notes;
  Result<std::unique_ptr<Interceptor>> made = Interceptor::install({&notes});
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->way(), Interceptor::Way::RecordFunction);
}

class RecordedTest : public InterceptorTest {
 protected:
  void SetUp() override { install(Interceptor::Way::RecordFunction); }
};

TEST_F(RecordedTest, SeesTheSame) {
  EXPECT_EQ(guard->way(), Interceptor::Way::RecordFunction);
  const torch::Tensor a = torch::ones({3, 4});
  notes.seen.clear();
  (void)torch::matmul(a, a.t());
  EXPECT_EQ(notes.count("aten::matmul"), 0);
  const Seen& mm = notes.only("aten::mm");
  ASSERT_EQ(mm.inputs.size(), 1u);
  EXPECT_EQ(mm.inputs[0].begin, begin_of(a));
  EXPECT_EQ(mm.outputs, 1u);
  EXPECT_THROW((void)torch::mm(a, a), c10::Error);
  EXPECT_FALSE(notes.seen.back().returned);
  guard->disable();
  notes.seen.clear();
  (void)torch::ones({3}).exp();
  EXPECT_TRUE(notes.seen.empty());
}

TEST_F(RecordedTest, RunsTheOpThoughAListenerThrows) {
  torch::Tensor a = torch::ones({3});
  notes.refuses = "aten::exp_";
  a.zero_().exp_();
  EXPECT_EQ(a.sum().item<float>(), 3.0f);
  EXPECT_FALSE(first.seen.empty());
}

TEST_F(RecordedTest, LeavesEveryBitAsItWas) {
  const std::vector<torch::Tensor> with = step(true);
  guard->disable();
  expect_equal(with, step(true));
}

}  // namespace
}  // namespace ullage::runtime
