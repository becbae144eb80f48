// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/kernel_facts.h"
#include "ullage/runtime/ops/op_info.h"
#include "ullage/runtime/ops/taped_op.h"

#include "ullage/runtime/ops/interceptor.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace ullage::runtime {
namespace {

using Blob = std::vector<char>;

Blob blob_of(const c10::StorageImpl& storage) {
  const char* begin = static_cast<const char*>(storage.data());
  return Blob(begin, begin + storage.nbytes());
}

StoragePtr storage_of(const Blob& blob) {
  const torch::Tensor copy = torch::empty({static_cast<std::int64_t>(blob.size())}, torch::kByte);
  std::memcpy(copy.mutable_data_ptr(), blob.data(), blob.size());
  return storage_use(*copy.unsafeGetTensorImpl())->storage;
}

Blob generator_state() {
  const UnseenOps unseen;
  const torch::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  return blob_of(*state.storage().unsafeGetStorageImpl());
}

// Reruns every op that may be recomputed right after it ran, on copies of what it read, and compares the results.
class RunsTwice final : public OpListener {
 public:
  std::map<std::string, int> same;      // by op: how often
  std::set<std::string> different;      // ops whose second run gave other bits, or changed its inputs
  std::set<std::string> not_taken;      // ops that the rules allow but the tape refuses
  std::vector<std::string> statistics;  // batch norms that changed their running statistics when run again

  void begin(OpCall& call) override {
    const plan::RecomputeRule how = plan::recompute_rule_of(call.name);
    Open open;
    if (how != plan::RecomputeRule::Never && how != plan::RecomputeRule::Blank) {  // Blank: contents are undefined
      const UnseenOps unseen;
      for (const StorageUse& input : call.inputs) {
        open.inputs.push_back(input);
        open.before.push_back(blob_of(*input.storage));
      }
      open.taped = TapedOp::capture(call, open.inputs, how);
      if (open.taped == nullptr) not_taken.insert(std::string(call.name));
    }
    open_.push_back(std::move(open));
  }

  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override {
    const Open open = std::move(open_.back());
    open_.pop_back();
    if (open.taped == nullptr || !returned) return;
    const UnseenOps unseen;
    try {
      compare(std::string(call.name), open, outputs);
    } catch (const std::exception& error) {
      different.insert(std::string(call.name) + ": " + error.what());
    }
  }

 private:
  struct Open {
    std::vector<StorageUse> inputs;
    std::vector<Blob> before;
    std::unique_ptr<TapedOp> taped;
  };

  void compare(const std::string& name, const Open& open, std::span<const c10::IValue> outputs) {
    std::vector<StoragePtr> expected;              // new storages, each once
    std::set<const c10::StorageImpl*> workspaces;  // of recurrent layers; they have parts that are never written
    for (const c10::IValue& output : outputs) {
      each_tensor(output, [&](const at::Tensor& tensor) {
        const auto use = storage_use(*tensor.unsafeGetTensorImpl());
        if (!use) return;
        if (tensor.scalar_type() == at::kByte) workspaces.insert(use->storage.get());
        for (const StorageUse& input : open.inputs) {
          if (input.storage == use->storage) return;
        }
        for (const StoragePtr& known : expected) {
          if (known == use->storage) return;
        }
        expected.push_back(use->storage);
      });
    }
    std::vector<StoragePtr> inputs;
    for (std::size_t i = 0; i < open.inputs.size(); ++i) {
      inputs.push_back(open.taped->needs(i) ? storage_of(open.before[i]) : nullptr);
    }
    std::vector<Blob> originals;
    for (const StorageUse& input : open.inputs) originals.push_back(blob_of(*input.storage));
    const Blob generator = generator_state();
    const std::vector<StoragePtr> made = open.taped->run(inputs);
    bool equal = made.size() == expected.size() && generator_state() == generator;
    for (std::size_t i = 0; equal && i < made.size(); ++i) {
      equal = workspaces.contains(expected[i].get()) || blob_of(*made[i]) == blob_of(*expected[i]);
    }
    for (std::size_t i = 0; equal && i < inputs.size(); ++i) {
      equal = blob_of(*open.inputs[i].storage) == originals[i];  // the program's own storages must not change
      if (open.inputs[i].written) equal = equal && blob_of(*inputs[i]) == originals[i];
    }
    if (equal) {
      ++same[name];
    } else {
      different.insert(name);
    }
  }

  std::vector<Open> open_;
};

class TapedOpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(7);
    Result<std::unique_ptr<Interceptor>> made = Interceptor::install({&twice});
    ASSERT_TRUE(made) << made.error().text();
    guard = std::move(*made);
    guard->enable();
  }
  void TearDown() override { guard.reset(); }
  void expect_same(const std::vector<std::string>& ops) {
    EXPECT_EQ(twice.different, std::set<std::string>{});
    EXPECT_EQ(twice.not_taken, std::set<std::string>{});
    for (const std::string& op : ops) EXPECT_GT(twice.same[op], 0) << op;
  }

  RunsTwice twice;
  std::unique_ptr<Interceptor> guard;
};

TEST_F(TapedOpTest, GivesTheSameBitsForAConvolutionalNet) {
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1).bias(false)),
                            torch::nn::BatchNorm2d(16), torch::nn::ReLU(torch::nn::ReLUOptions(true)),
                            torch::nn::MaxPool2d(2), torch::nn::Conv2d(16, 32, 3), torch::nn::GroupNorm(4, 32),
                            torch::nn::GELU(), torch::nn::Dropout(0.3),
                            torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(32, 8, 4).stride(2)),
                            torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().inplace(true)), torch::nn::Flatten());
  const torch::Tensor x = torch::randn({4, 3, 20, 20});
  const torch::Tensor before = net[1]->named_buffers()["running_mean"].clone();
  const torch::Tensor loss = torch::cat({net->forward(x), net->forward(x * 2)}, 1).pow(2).mean();
  loss.backward();
  expect_same({"aten::convolution", "aten::native_batch_norm", "aten::relu_", "aten::max_pool2d_with_indices",
               "aten::native_group_norm", "aten::gelu", "aten::bernoulli_.float", "aten::leaky_relu_", "aten::cat",
               "aten::pow.Tensor_Scalar", "aten::mean", "aten::randn"});
  EXPECT_FALSE(torch::equal(before, net[1]->named_buffers()["running_mean"])) << "the program's own run writes them";
}

// A rerun of a batch norm must not update its running statistics a second time.
TEST_F(TapedOpTest, LeavesRunningStatisticsAlone) {
  torch::nn::BatchNorm2d norm(4);
  const torch::Tensor x = torch::randn({2, 4, 6, 6});
  norm->forward(x);
  EXPECT_GT(twice.same["aten::native_batch_norm"], 0);
  guard.reset();
  torch::nn::BatchNorm2d plain(4);
  plain->forward(x);
  EXPECT_TRUE(torch::equal(norm->running_mean, plain->running_mean));
  EXPECT_TRUE(torch::equal(norm->running_var, plain->running_var));
}

// A rerun needs the same grad mode, because kernels depend on it: without it a recurrent layer makes no workspace.
TEST_F(TapedOpTest, GivesTheSameBitsForRecurrentAndAttentionLayers) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(8, 16).num_layers(2));
  torch::nn::Embedding words(20, 8);
  const torch::Tensor series = words->forward(torch::randint(0, 20, {5, 3}));
  const torch::Tensor out = std::get<0>(lstm->forward(series));
  out.sum().backward();
  {
    const torch::NoGradGuard none;
    (void)lstm->forward(series);
  }
  const torch::Tensor q = torch::randn({2, 4, 16, 8}).requires_grad_();
  torch::scaled_dot_product_attention(q, q, q, {}, 0.0, true).sum().backward();
  torch::scaled_dot_product_attention(q, q, q, {}, 0.25).sum().backward();
  torch::layer_norm(q, {8}, torch::ones({8}), torch::zeros({8})).sum().backward();
  (void)torch::softmax(q, -1);
  expect_same({"aten::embedding", "aten::bmm", "aten::native_layer_norm", "aten::_softmax", "aten::mkldnn_rnn_layer"});
}

TEST_F(TapedOpTest, OverwritesCopiesOnlyInPlaceAndThroughViews) {
  torch::Tensor x = torch::randn({6, 8});
  x.select(0, 2).relu_();
  x.narrow(1, 2, 3).mul_(1.5);
  x.t().add_(1);
  x.slice(0, 0, 4, 2).copy_(x.slice(0, 1, 4, 2));
  x.select(0, 1).add_(x.select(0, 0));
  torch::dropout_(x, 0.5, true);
  expect_same({"aten::relu_", "aten::mul_.Tensor", "aten::add_.Scalar", "aten::copy_", "aten::add_.Tensor"});
}

TEST_F(TapedOpTest, GivesTheSameBitsUnderAutocast) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  torch::nn::Conv2d conv(3, 8, 3);
  torch::nn::Linear linear(8, 4);
  const torch::Tensor out = linear->forward(conv->forward(torch::randn({2, 3, 9, 9})).mean({2, 3}));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  out.sum().backward();
  expect_same({"aten::convolution", "aten::_to_copy", "aten::addmm"});
}

TEST_F(TapedOpTest, DrawsFromANamedGeneratorWithoutMovingIt) {
  torch::Generator own = at::make_generator<at::CPUGeneratorImpl>(3);
  const torch::Tensor a = torch::empty({100}).normal_(0, 1, own);
  guard.reset();
  torch::Generator plain = at::make_generator<at::CPUGeneratorImpl>(3);
  EXPECT_TRUE(torch::equal(a, torch::empty({100}).normal_(0, 1, plain)));
  EXPECT_TRUE(torch::equal(own.get_state(), plain.get_state()));
  EXPECT_GT(twice.same["aten::normal_"], 0);
}

TEST(TapedOp, IsNotMadeOfWhatIsMoreThanBytes) {
  struct Takes final : OpListener {
    std::map<std::string, bool> taken;
    void begin(OpCall& call) override {
      const std::vector<StorageUse> inputs(call.inputs.begin(), call.inputs.end());
      taken[std::string(call.name)] = TapedOp::capture(call, inputs, plan::RecomputeRule::Plain) != nullptr;
    }
    void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}
  } takes;
  auto installed = Interceptor::install({&takes});
  ASSERT_TRUE(installed);
  const std::unique_ptr<Interceptor> guard = std::move(*installed);
  guard->enable();
  const torch::Tensor z = torch::randn({4}, torch::kComplexFloat);
  (void)torch::sin(z.conj());
  (void)torch::cos(z);
  torch::Tensor inference;
  {
    const c10::InferenceMode mode;
    inference = torch::ones({4});
    (void)torch::exp(inference);
  }
  EXPECT_FALSE(takes.taken["aten::sin"]) << "the conjugate is taken when it is read";
  EXPECT_TRUE(takes.taken["aten::cos"]);
  EXPECT_FALSE(takes.taken["aten::exp"]) << "no version is counted of it";
}

// Outside the pool, an op may read weights that are mapped from a file, until an op writes to them.
TEST(TapedOp, ReadsWeightsOfAMappedFile) {
  struct Takes final : OpListener {
    std::unique_ptr<TapedOp> taped;
    void begin(OpCall& call) override { taped = TapedOp::capture(call, {}, plan::RecomputeRule::Plain); }
    void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}
  } takes;
  const std::string file = ::testing::TempDir() + "weights" + std::to_string(getpid());
  std::ofstream(file) << std::string(4096, 'w');
  torch::Tensor mapped = torch::from_file(file, /*shared=*/false, 4096, torch::kByte);
  const torch::Tensor shared = torch::from_file(file, /*shared=*/true, 4096, torch::kByte);
  std::vector<std::uint8_t> bytes(4096);
  const torch::Tensor borrowed = torch::from_blob(mapped.data_ptr(), {4096}, torch::kByte);
  auto installed = Interceptor::install({&takes});
  ASSERT_TRUE(installed);
  const std::unique_ptr<Interceptor> guard = std::move(*installed);
  guard->enable();
  (void)torch::neg(shared);
  EXPECT_EQ(takes.taped, nullptr) << "other processes may write to it";
  (void)torch::neg(borrowed);
  EXPECT_EQ(takes.taped, nullptr) << "its owner may write to it";
  (void)torch::neg(torch::from_blob(bytes.data(), {4096}, torch::kByte));
  EXPECT_EQ(takes.taped, nullptr);
  (void)torch::neg_(mapped);
  EXPECT_EQ(takes.taped, nullptr) << "running it again would write to it again";
  (void)torch::neg(mapped);
  const std::unique_ptr<TapedOp> taped = std::move(takes.taped);
  ASSERT_NE(taped, nullptr);
  EXPECT_TRUE(taped->mapped_stand());
  const std::vector<StoragePtr> made = taped->run({});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(blob_of(*made[0]), Blob(4096, 'w'));  // negated twice
  mapped.add_(1);
  EXPECT_FALSE(taped->mapped_stand());
  std::filesystem::remove(file);
}

TEST(TapedOp, NoticesWhatChangedInPlaceWithoutBeingSeen) {
  struct Takes final : OpListener {
    std::unique_ptr<TapedOp> taped;
    void begin(OpCall& call) override {
      const std::vector<StorageUse> inputs(call.inputs.begin(), call.inputs.end());
      if (call.name == "aten::exp") taped = TapedOp::capture(call, inputs, plan::RecomputeRule::Plain);
    }
    void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override {}
  } takes;
  auto installed = Interceptor::install({&takes});
  ASSERT_TRUE(installed);
  const std::unique_ptr<Interceptor> guard = std::move(*installed);
  guard->enable();
  torch::Tensor x = torch::ones({4});
  (void)torch::exp(x);
  ASSERT_NE(takes.taped, nullptr);
  EXPECT_TRUE(takes.taped->unchanged(0));
  const UnseenOps unseen;
  x.add_(1);
  EXPECT_FALSE(takes.taped->unchanged(0));
}

// If one of these no longer holds, plans are made without it, and only this test reports it.
TEST(KernelFacts, HoldForThisBuildOnThisMachine) {
  const KernelFacts facts = probe_kernels();
  EXPECT_TRUE(facts.recomputes_batch_norm);
  EXPECT_TRUE(facts.convolution_input_unread);
}

}  // namespace
}  // namespace ullage::runtime
