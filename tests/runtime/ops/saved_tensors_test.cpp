// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/saved_tensors.h"

#include "ullage/train/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace ullage::runtime {
namespace {

using torch::Tensor;

class Counts final : public SavedListener {
 public:
  std::map<SavedKind, int> saved_of;
  std::map<Address, int> held;  // saved and not yet released
  int saved_calls = 0;
  int unpacked = 0;
  int released_calls = 0;
  bool full = false;
  bool lost = false;

  void saved(const StorageUse& use, SavedKind kind) override {
    const std::lock_guard lock(mutex_);
    if (full) throw std::runtime_error("no room to save");
    ++saved_calls, ++saved_of[kind], ++held[use.begin];
  }
  void unpacking(const StorageUse&) override {
    const std::lock_guard lock(mutex_);
    if (lost) throw std::runtime_error("cannot be read back");
    ++unpacked;
  }
  void released(Address begin) noexcept override {
    const std::lock_guard lock(mutex_);
    ++released_calls;
    if (--held[begin] == 0) held.erase(begin);
  }
  int held_of(const Tensor& t) {
    const auto found = held.find({reinterpret_cast<std::uint64_t>(t.storage().data())});
    return found == held.end() ? 0 : found->second;
  }

 private:
  std::mutex mutex_;
};

class SavedTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override { on(); }
  void on() {
    Result<std::unique_ptr<SavedTensorHooks>> made = SavedTensorHooks::install(counts);
    if (!made) GTEST_SKIP() << made.error().text();
    guard = std::move(*made);
  }
  void TearDown() override { guard.reset(); }

  Counts counts;
  std::unique_ptr<SavedTensorHooks> guard;
};

Tensor leaf(std::initializer_list<std::int64_t> sizes) { return torch::rand(sizes).add_(0.5).requires_grad_(); }

std::string error_of(const std::function<void()>& program) {
  try {
    program();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(SavedTensorsTest, TellsWhatIsSavedReadAndLetGo) {
  const Tensor w = leaf({4});
  const Tensor x = torch::rand({4});
  Tensor y = (w * x).tanh();  // the product saves w and x, tanh its output
  EXPECT_EQ(counts.saved_calls, 2) << "only what the gradient of w needs: x; and the output of tanh";
  EXPECT_EQ(counts.held_of(x), 1);
  EXPECT_EQ(counts.held_of(y), 1);
  EXPECT_EQ(counts.saved_of[SavedKind::Constant], 1);
  EXPECT_EQ(counts.saved_of[SavedKind::Activation], 1);
  y.sum().backward();
  EXPECT_EQ(counts.unpacked, 2);
  EXPECT_TRUE(counts.held.empty());
  EXPECT_EQ(counts.released_calls, 2);
}

// ullage::train puts an engine of its own before ours. Neither may end up before the other twice.
TEST_F(SavedTensorsTest, ACheckpointInCppSavesForItselfAndWhatIsOutsideIsStillTold) {
  const Tensor w = leaf({4});
  for (int round = 0; round < 3; ++round) {
    const int before = counts.saved_calls;
    const Tensor y = train::checkpoint([](const Tensor& in) { return in.tanh().exp(); }, w);
    EXPECT_EQ(counts.saved_calls - before, 1) << "the input alone";
    guard->renew();
    const Tensor z = y.sigmoid();
    EXPECT_EQ(counts.saved_calls - before, 2) << "and what is outside";
    z.sum().backward();
    EXPECT_EQ(counts.held_of(z), 0);
    if (round == 1) {
      guard.reset();
      on();
    }
  }
}

TEST_F(SavedTensorsTest, KnowsParametersThroughTheirViews) {
  torch::nn::Linear linear(3, 2);
  const Tensor x = leaf({5, 3});
  const Tensor hidden = x * 2;
  counts.saved_of.clear();
  const Tensor y = linear->forward(hidden);
  EXPECT_EQ(counts.saved_of[SavedKind::Parameter], 1) << "the transposed weight";
  EXPECT_EQ(counts.saved_of[SavedKind::Activation], 1);
  EXPECT_EQ(counts.held_of(linear->weight), 1);
}

TEST_F(SavedTensorsTest, TellsAStorageAsOftenAsItIsSaved) {
  const Tensor w = leaf({4});
  const Tensor h = w * 1;
  const Tensor y = h * h + h.view({2, 2}).exp().view({4}) + h.pow(2);
  EXPECT_EQ(counts.held_of(h), 3);
  y.sum().backward();
  EXPECT_EQ(counts.held_of(h), 0);
}

TEST_F(SavedTensorsTest, SavesNothingWithoutGrad) {
  const Tensor w = leaf({4});
  {
    const torch::NoGradGuard no_grad;
    (void)(w * w).tanh();
  }
  (void)torch::rand({4}).tanh();
  EXPECT_EQ(counts.saved_calls, 0);
}

TEST_F(SavedTensorsTest, LetsGoOfAGraphThatNeverRan) {
  { const Tensor y = leaf({4}).exp().tanh().sigmoid(); }
  EXPECT_EQ(counts.saved_calls, 3);
  EXPECT_TRUE(counts.held.empty());
}

TEST_F(SavedTensorsTest, UnpacksAgainWhileTheGraphIsKept) {
  const Tensor w = leaf({4});
  const Tensor y = w.exp().tanh().sum();
  y.backward({}, /*retain_graph=*/true);
  const Tensor once = w.grad().clone();
  y.backward({}, /*retain_graph=*/true);
  EXPECT_TRUE(torch::equal(w.grad(), 2 * once));
  EXPECT_EQ(counts.unpacked, 4);
  EXPECT_EQ(counts.released_calls, 0);
  y.backward();
  EXPECT_TRUE(counts.held.empty());
  EXPECT_NE(error_of([&] { y.backward(); }).find("backward through the graph a second time"), std::string::npos);
}

// Removes ", which is output 0 of Mul," from an error's text.
std::string without_maker(std::string text) {
  const std::size_t from = text.find(", which is output");
  if (from == std::string::npos) return text;
  return text.erase(from, text.find(',', from + 1) + 1 - from);
}

// torch refuses these programs. Its message must be the same with our hooks and without.
TEST_F(SavedTensorsTest, SpeaksOfInPlaceChangesInTorchsWords) {
  const std::map<std::string, std::function<void()>> programs = {
      {"an input",
       [] {
         Tensor v = leaf({4}) * 1;
         const Tensor s = v * v;
         v.add_(1);
         s.sum().backward();
       }},
      {"an input that is gone",
       [] {
         Tensor s;
         {
           Tensor v = leaf({4}) * 1;
           s = v * v;
           v.detach().add_(1);
         }
         s.sum().backward();
       }},
      {"an output",
       [] {
         Tensor s = leaf({4}).tanh();
         s.mul_(2);
         s.sum().backward();
       }},
      {"an output through its data",
       [] {
         Tensor s = leaf({2, 3}).exp();
         s.detach().zero_();
         s.sum().backward();
       }},
      {"a view",
       [] {
         Tensor v = leaf({4}) * 1;
         const Tensor s = v.view({2, 2}).pow(2);
         v.add_(1);
         s.sum().backward();
       }},
      {"an in-place op on a view",
       [] {
         Tensor v = leaf({4}) * 1;
         v.view({2, 2}).tanh_();
         v.add_(1);
         v.sum().backward();
       }},
      {"a parameter",
       [] {
         Tensor w = leaf({4});
         const Tensor s = w * w;
         {
           const torch::NoGradGuard no_grad;
           w.add_(1);
         }
         s.sum().backward();
       }},
      {"data",
       [] {
         Tensor x = torch::rand({4});
         const Tensor s = leaf({4}) * x;
         x.add_(1);
         s.sum().backward();
       }},
      {"doubles under anomaly mode",
       [] {
         const torch::autograd::DetectAnomalyGuard anomaly;
         Tensor v = torch::ones({3}, torch::kDouble).requires_grad_() * 1;
         const Tensor s = v.pow(3);
         v.mul_(2);
         s.sum().backward();
       }},
      {"detach_",
       [] {
         Tensor v = leaf({4}) * 1;
         const Tensor s = v * v;
         v.detach_();
         s.sum().backward();
       }},
      {"inference tensors",
       [] {
         Tensor x;
         {
           const c10::InferenceMode inference;
           x = torch::ones({3});
         }
         (leaf({3}) * x).sum().backward();
       }},
  };
  std::map<std::string, std::string> with;
  for (const auto& [what, program] : programs) with[what] = error_of(program);
  guard.reset();
  int changed = 0;
  for (const auto& [what, program] : programs) {
    const std::string stock = error_of(program);
    if (what == "detach_") continue;  // torch alone refuses; with any hooks it knows the maker and rightly goes on
    if (what == "a view" || what == "an in-place op on a view") {
      EXPECT_EQ(without_maker(with[what]), without_maker(stock)) << what;  // torch may not name the maker of a view
    } else {
      EXPECT_EQ(with[what], stock) << what;
    }
    changed += stock.find("modified by an inplace operation") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(changed, 9);
}

TEST_F(SavedTensorsTest, KeepsNoCycle) {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage{c10::intrusive_ptr<c10::StorageImpl>()};
  {
    const Tensor y = leaf({4}).tanh();
    storage = c10::weak_intrusive_ptr<c10::StorageImpl>(y.storage().getWeakStorageImpl());
  }
  EXPECT_TRUE(storage.expired());
}

std::vector<Tensor> train() {
  torch::manual_seed(5);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)), torch::nn::BatchNorm2d(8),
                            torch::nn::ReLU(torch::nn::ReLUOptions(true)), torch::nn::Dropout(0.3),
                            torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).stride(2)), torch::nn::LeakyReLU(),
                            torch::nn::Flatten(), torch::nn::Linear(72, 10));
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(1e-2));
  torch::nn::LSTM lstm(10, 6);
  std::vector<Tensor> left;
  for (int i = 0; i < 2; ++i) {
    adam.zero_grad();
    const Tensor x = torch::randn({4, 3, 8, 8}).requires_grad_();
    const Tensor out = net->forward(x);
    const Tensor hidden = std::get<0>(lstm->forward(out.unsqueeze(0)));
    const Tensor loss = torch::nn::functional::cross_entropy(out, torch::arange(4)) + hidden.pow(2).sum();
    // The gradient penalty: backward of a backward.
    const Tensor grad = torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    (loss + grad.pow(2).sum()).backward();
    adam.step();
    left.push_back(x.grad().clone());
  }
  for (const Tensor& p : net->parameters()) left.insert(left.end(), {p, p.grad()});
  for (const Tensor& b : net->buffers()) left.push_back(b);
  return left;
}

TEST_F(SavedTensorsTest, LeavesEveryBitAsItWas) {
  const std::vector<Tensor> with = train();
  EXPECT_GT(counts.saved_calls, 50);
  EXPECT_GE(counts.unpacked, 50);
  EXPECT_TRUE(counts.held.empty()) << counts.held.size();
  guard.reset();
  const std::vector<Tensor> without = train();
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(torch::equal(with[i], without[i])) << i;
}

TEST_F(SavedTensorsTest, PassesTheListenersExceptionsOn) {
  const Tensor w = leaf({4});
  counts.full = true;
  EXPECT_EQ(error_of([&] { (void)w.tanh(); }), "no room to save");
  counts.full = false;
  const Tensor y = w.tanh().sum();
  counts.lost = true;
  EXPECT_EQ(error_of([&] { y.backward({}, true); }), "cannot be read back");
  counts.lost = false;
  y.backward();
  EXPECT_TRUE(counts.held.empty());
}

TEST_F(SavedTensorsTest, GraphsOutliveTheGuard) {
  const Tensor w = leaf({4});
  const Tensor y = w.exp().sum();
  const int was = counts.unpacked;
  guard.reset();
  y.backward();
  EXPECT_TRUE(torch::equal(w.grad(), w.exp()));
  EXPECT_EQ(counts.unpacked, was);
  (void)w.exp();
  EXPECT_EQ(counts.saved_calls, 1);
  on();
  (void)w.exp();
  EXPECT_EQ(counts.saved_calls, 2);
}

TEST_F(SavedTensorsTest, ServesThreads) {
  const auto work = [] {
    const Tensor w = torch::ones({16}).requires_grad_();
    for (int i = 0; i < 100; ++i) w.exp().tanh().sum().backward();
  };
  std::thread one(work);
  std::thread other(work);
  one.join();
  other.join();
  EXPECT_EQ(counts.saved_calls, 400);
  EXPECT_EQ(counts.unpacked, 400);
  EXPECT_TRUE(counts.held.empty());
}

TEST_F(SavedTensorsTest, KeepsSparseTensorsAndNumbers) {
  const Tensor w = leaf({3, 2});
  const Tensor sparse = torch::eye(3).to_sparse();
  torch::mm(sparse, w).sum().backward();
  EXPECT_TRUE(torch::equal(w.grad(), torch::ones({3, 2})));
  const Tensor v = leaf({3});
  (v * 2 + torch::pow(2, v)).sum().backward();
  EXPECT_TRUE(counts.held.empty());
}

// Stands for Python's engine, which has its own hooks while a program asks for them.
struct OtherEngine final : torch::autograd::Engine {
  struct Keep final : torch::autograd::SavedVariableHooks {
    Tensor kept;
    void call_pack_hook(const Tensor& t) override { kept = t.detach(); }
    Tensor call_unpack_hook() override { return kept; }
  };
  bool has_hooks = false;
  int asked = 0;
  OtherEngine() = default;
  ~OtherEngine() override { stop(); }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    ++asked;
    if (!has_hooks) return nullptr;
    return std::make_unique<Keep>();
  }
};
OtherEngine& other_engine() {
  static auto* engine = new OtherEngine;
  return *engine;
}

TEST_F(SavedTensorsTest, LeavesTheProgramsHooksTheFirstWord) {
  using torch::autograd::Engine;
  const Tensor w = leaf({4});
  torch::autograd::set_default_engine_stub([]() -> Engine& { return other_engine(); });
  (void)w.exp();
  EXPECT_EQ(counts.saved_calls, 0) << "an engine that comes later takes the place";
  guard->renew();
  w.exp().sum().backward();
  EXPECT_EQ(counts.saved_calls, 1);
  EXPECT_GT(other_engine().asked, 1);
  other_engine().has_hooks = true;
  w.exp().sum().backward();
  EXPECT_EQ(counts.saved_calls, 1);
  other_engine().has_hooks = false;
  guard.reset();
  EXPECT_EQ(&Engine::get_default_engine(), &other_engine());
  torch::autograd::set_default_engine_stub([]() -> Engine& { return Engine::get_base_engine(); });
}

}  // namespace
}  // namespace ullage::runtime
