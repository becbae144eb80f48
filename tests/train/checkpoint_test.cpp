// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/checkpoint.h"

#include "ullage/train/autocast_guard.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/nn/functional/dropout.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ullage::train {
namespace {

using torch::Tensor;
using Function = std::function<Tensor(const Tensor&)>;

Tensor leaf(torch::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(); }

// Knows whether the storage of a tensor lives.
class Watched final {
 public:
  void watch(const Tensor& tensor) {
    storage_.emplace(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl()));
  }
  bool lives() const { return !storage_->expired(); }

 private:
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing thrown";
}

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    x = leaf({8, 16}), w = leaf({16, 16}), v = leaf({16, 16});
  }
  // The gradients of x, w and v for `loss`, which are cleared.
  std::vector<Tensor> gradients(const Tensor& loss, bool retain = false) {
    loss.backward({}, retain);
    std::vector<Tensor> list;
    for (Tensor* one : {&x, &w, &v}) {
      list.push_back(one->grad().defined() ? one->grad().clone() : Tensor());
      one->mutable_grad().reset();
    }
    return list;
  }
  static void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
      if (a[i].defined()) {
        EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
      }
    }
  }
  Tensor block(const Tensor& in) {
    ++calls;
    return torch::mm(torch::dropout(torch::tanh(torch::mm(in, w)), 0.3, true), v);
  }

  Tensor x, w, v;
  int calls = 0;
};

TEST_F(CheckpointTest, GivesTheSameBitsAndLeavesTheGeneratorWhereItWas) {
  torch::manual_seed(7);
  const std::vector<Tensor> plain = gradients(block(x).pow(2).sum());
  const Tensor next = torch::randn({4});
  torch::manual_seed(7);
  const Tensor y = checkpoint([&](const Tensor& in) { return block(in); }, x);
  EXPECT_EQ(calls, 2);
  expect_equal(gradients(y.pow(2).sum()), plain);
  EXPECT_EQ(calls, 3) << "once more for all that backward needs";
  EXPECT_TRUE(torch::equal(torch::randn({4}), next)) << "the second run draws from a generator of its own";
}

TEST_F(CheckpointTest, DrawsOtherNumbersIfAskedNotToKeepTheGenerator) {
  torch::manual_seed(7);
  const std::vector<Tensor> plain = gradients(block(x).sum());
  torch::manual_seed(7);
  const Tensor y = checkpoint(
      {.preserve_rng_state = false}, [&](const Tensor& in) { return block(in); }, x);
  EXPECT_FALSE(torch::equal(gradients(y.sum())[0], plain[0]));
}

TEST_F(CheckpointTest, KeepsNothingBetweenForwardAndBackward) {
  Watched inner;
  const Tensor y = checkpoint(
      [&](const Tensor& in) {
        const Tensor made = torch::tanh(torch::mm(in, w));  // saved twice in a plain run
        inner.watch(made);
        return torch::mm(made, v);
      },
      x);
  EXPECT_FALSE(inner.lives());
  gradients(y.sum());
  EXPECT_FALSE(inner.lives()) << "nor after it";
}

TEST_F(CheckpointTest, FreesTheFunctionWithTheGraph) {
  const auto held = std::make_shared<int>(1);
  Tensor y = checkpoint([&, held](const Tensor& in) { return torch::tanh(in * *held); }, x);
  EXPECT_GT(held.use_count(), 1);
  y = Tensor();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CheckpointTest, StopsTheSecondRunWhenItHasWhatIsNeeded) {
  int ends = 0;
  const auto function = [&](const Tensor& in) {
    const Tensor y = torch::tanh(torch::mm(in, w));
    ++ends;
    return y + 1;  // saves nothing
  };
  gradients(checkpoint(function, x).sum());
  EXPECT_EQ(ends, 1);
  gradients(checkpoint({.early_stop = false}, function, x).sum());
  EXPECT_EQ(ends, 3);
}

TEST_F(CheckpointTest, Nests) {
  const std::vector<Tensor> plain = gradients(torch::sigmoid(torch::mm(torch::tanh(torch::mm(x, w)), v)).sum());
  Watched inner;
  const Tensor y = checkpoint(
      [&](const Tensor& in) {
        const Tensor made = checkpoint([&](const Tensor& deep) { return torch::tanh(torch::mm(deep, w)); }, in);
        const Tensor second = checkpoint([&](const Tensor& deep) { return torch::mm(deep, v); }, made);
        inner.watch(made);
        return torch::sigmoid(second);
      },
      x);
  EXPECT_FALSE(inner.lives()) << "the input of an inner one is kept by the outer one";
  expect_equal(gradients(y.sum()), plain);
}

TEST_F(CheckpointTest, ReturnsWhatTheFunctionReturns) {
  const auto function = [&](const Tensor& in, double factor, std::vector<Tensor> more) {
    const Tensor y = torch::tanh(torch::mm(in, w)) * factor;
    return std::tuple{y, torch::exp(more[0] * y), std::string("text")};
  };
  const auto [a, b, text] = function(x, 0.5, {v.slice(0, 0, 8)});
  const std::vector<Tensor> plain = gradients((a * b).sum());
  const auto [c, d, also_text] = checkpoint(function, x, 0.5, std::vector<Tensor>{v.slice(0, 0, 8)});
  EXPECT_EQ(also_text, text);
  expect_equal(gradients((c * d).sum()), plain);
  const auto [only, unused, _] = checkpoint(function, x, 0.5, std::vector<Tensor>{v.slice(0, 0, 8)});
  EXPECT_TRUE(gradients(only.sum())[1].defined()) << "backward of one of several";
}

TEST_F(CheckpointTest, RunsBackwardAgainOverAKeptGraph) {
  const Tensor y = checkpoint([&](const Tensor& in) { return block(in); }, x);
  const std::vector<Tensor> first = gradients(y.sum(), /*retain=*/true);
  expect_equal(gradients(y.sum()), first);
  EXPECT_EQ(calls, 3) << "each pass recomputes";
}

TEST_F(CheckpointTest, BackwardInsideTheFunction) {
  const auto function = [&](const Tensor& in) {
    const Tensor y = torch::tanh(torch::mm(in, w)).sum();
    const Tensor slope = torch::autograd::grad({y}, {in}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    return (slope.pow(2).sum() + y);
  };
  const std::vector<Tensor> plain = gradients(function(x));
  expect_equal(gradients(checkpoint(function, x)), plain);
  expect_equal(gradients(checkpoint({.early_stop = false}, function, x)), plain);
}

TEST_F(CheckpointTest, KeepsTheStateOfAutocast) {
  const auto run = [&](const std::function<Tensor(const Function&, const Tensor&)>& through) {
    Tensor y;
    {
      const AutocastGuard guard(torch::kCPU, torch::kBFloat16);
      y = through([&](const Tensor& in) { return torch::tanh(torch::mm(in, w)); }, x);
      EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    }
    return gradients(y.sum());  // outside of the guard
  };
  const auto plain = run([](const Function& f, const Tensor& in) { return f(in); });
  expect_equal(run([](const Function& f, const Tensor& in) { return checkpoint(f, in); }), plain);
  EXPECT_EQ(torch::mm(x, w).scalar_type(), torch::kFloat32);
}

TEST_F(CheckpointTest, IsACallIfGradientsAreOff) {
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(checkpoint([&](const Tensor& in) { return block(in); }, x).requires_grad());
  EXPECT_EQ(calls, 1);
}

TEST_F(CheckpointTest, PassesExceptionsThroughAndGoesOn) {
  bool fail = true;
  const Function function = [&](const Tensor& in) {
    const Tensor y = torch::tanh(torch::mm(in, w));
    if (fail) throw std::runtime_error("no more");
    return torch::mm(y, v);
  };
  EXPECT_THROW(checkpoint(function, x), std::runtime_error);
  fail = false;
  const Tensor y = checkpoint(function, x);
  fail = true;
  torch::manual_seed(11);
  const Tensor next = torch::randn({2});
  torch::manual_seed(11);
  EXPECT_THROW(y.sum().backward(), std::runtime_error);
  EXPECT_TRUE(torch::equal(torch::randn({2}), next)) << "the generator is put back";
  Watched kept;
  {
    const Tensor made = torch::tanh(x);
    kept.watch(made);
    const Tensor z = made * made;
    EXPECT_TRUE(kept.lives());
    gradients(z.sum());
  }
  EXPECT_EQ(torch::mm(x, w).scalar_type(), torch::kFloat32);
}

TEST_F(CheckpointTest, FindsAnInputThatWasChangedInPlace) {
  Tensor in = x * 1;
  const Tensor y = checkpoint([&](const Tensor& given) { return torch::tanh(torch::mm(given, w)); }, in);
  in.add_(1);
  EXPECT_NE(message_of([&] { y.sum().backward(); }).find("modified by an inplace operation"), std::string::npos);
}

TEST_F(CheckpointTest, SaysIfTheSecondRunIsAnother) {
  int run = 0;
  const auto fewer = [&](const Tensor& in) { return run++ == 0 ? torch::tanh(torch::exp(in)) : in * 2; };
  EXPECT_NE(message_of([&] { checkpoint(fewer, x).sum().backward(); }).find("2 tensors in its first run and 0"),
            std::string::npos);
  run = 0;
  const auto more = [&](const Tensor& in) { return run++ == 0 ? torch::tanh(in) : torch::exp(torch::tanh(in)); };
  EXPECT_NE(message_of([&] { checkpoint({.early_stop = false}, more, x).sum().backward(); }).find("more tensors"),
            std::string::npos);
  run = 0;
  const auto smaller = [&](const Tensor& in) { return torch::tanh(in.slice(0, 0, run++ == 0 ? 8 : 4)); };
  const Tensor y = checkpoint(smaller, x);
  const std::string said = message_of([&] { y.sum().backward(); });
  EXPECT_NE(said.find("Float of [8, 16] on cpu"), std::string::npos) << said;
  EXPECT_NE(said.find("is Float of [4, 16] on cpu"), std::string::npos) << said;
}

// An engine of somebody else that gives saved-tensor hooks, as Python's and Ullage's runtime do.
class OthersEngine final : public torch::autograd::Engine {
 public:
  using Engine = torch::autograd::Engine;
  explicit OthersEngine(Engine& before) : before_(before) {}
  ~OthersEngine() override { stop(); }
  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep_graph,
                                         bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    return before_.execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (auto hooks = before_.get_default_saved_variable_hooks()) return hooks;
    if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return nullptr;
    struct Hook final : torch::autograd::SavedVariableHooks {
      explicit Hook(OthersEngine& of) : engine(of) {}
      void call_pack_hook(const Tensor& tensor) override { kept = tensor.detach(), ++engine.packed; }
      Tensor call_unpack_hook() override { return ++engine.unpacked, kept; }
      OthersEngine& engine;
      Tensor kept;
    };
    return on ? std::make_unique<Hook>(*this) : nullptr;
  }
  int packed = 0, unpacked = 0;
  bool on = true;

 private:
  Engine& before_;
};

OthersEngine* others = nullptr;  // never destroyed: torch may ask it

TEST_F(CheckpointTest, HooksOfOthersSeeTheInputsAndWhatIsOutside) {
  const auto run = [&] {
    others->packed = others->unpacked = 0;
    const Tensor y = checkpoint([&](const Tensor& in) { return torch::mm(torch::tanh(torch::mm(in, w)), v); }, x);
    EXPECT_EQ(others->packed, 1) << "the input";
    const Tensor z = torch::exp(y);
    EXPECT_EQ(others->packed, 2);
    gradients(z.sum());
    EXPECT_EQ(others->packed, 2) << "the second run saves for the checkpoint";
    EXPECT_EQ(others->unpacked, 2);
  };
  gradients(checkpoint([&](const Tensor& in) { return torch::tanh(in); }, x).sum());  // ours is there first
  others = new OthersEngine(torch::autograd::Engine::get_default_engine());
  torch::autograd::set_default_engine_stub([]() -> torch::autograd::Engine& { return *others; });
  run();  // theirs leads to ours
  torch::autograd::set_default_engine_stub([]() -> torch::autograd::Engine& {
    static auto* alone = others = new OthersEngine(torch::autograd::Engine::get_base_engine());
    return *alone;
  });
  run();  // theirs has replaced ours
  others->on = false;
}

}  // namespace
}  // namespace ullage::train
