// SPDX-License-Identifier: Apache-2.0
// Compares whole programs on the stand-in card with the CPU, and tests what the card has besides ops: generators,
// streams, events, memory.

#include "card_programs.h"
#include "stand_in_card.h"

#include <ATen/Context.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>

#include <tuple>

namespace card_torch {
namespace {

// The CPU has fused attention; the card computes it from other ops. Without flash attention, both do the latter.
class Card final : public testing::Environment {
  void SetUp() override {
    install();
    at::globalContext().setSDPUseFlash(false);
  }
};
const auto* const card = testing::AddGlobalTestEnvironment(new Card);

at::Generator card_generator() { return at::globalContext().defaultGenerator(kOnCard); }

Tensor cpu_generator_state() { return at::globalContext().defaultGenerator(kCpu).get_state(); }

TEST(StandInCard, IsThere) {
  EXPECT_TRUE(torch::cuda::is_available());
  EXPECT_EQ(torch::cuda::device_count(), 1u);
  const Tensor x = torch::ones({2, 3}, kOnCard);
  EXPECT_TRUE(x.is_cuda());
  EXPECT_EQ((x + 1).device(), kOnCard);
  EXPECT_EQ((x + 1).sum().item<float>(), 12);
}

TEST(StandInCard, TrainsToTheBitsOfTheCpu) {
  EXPECT_TRUE(same(train_on_pictures(kCpu), train_on_pictures(kOnCard)));
  EXPECT_TRUE(
      same(train_on_pictures(kCpu, {.channels_last = true}), train_on_pictures(kOnCard, {.channels_last = true})));
  EXPECT_TRUE(same(train_on_words(kCpu), train_on_words(kOnCard)));
  EXPECT_FALSE(same(train_on_words(kCpu), train_on_words(kOnCard, {.seed = 2})));
}

// The card's cells add in another order than the CPU's, so the bits may differ.
TEST(StandInCard, TrainsRecurrentNetsNearly) {
  const Named cpu = train_on_series(kCpu), on_card = train_on_series(kOnCard);
  ASSERT_EQ(cpu.size(), on_card.size());
  for (std::size_t i = 0; i < cpu.size(); ++i)
    EXPECT_TRUE(cpu[i].second.allclose(on_card[i].second, 1e-3, 1e-5)) << cpu[i].first;
  EXPECT_TRUE(same(on_card, train_on_series(kOnCard)));
}

// The card must not use the CPU's fused attention even if the program allows it.
TEST(StandInCard, AttendsByMatrixProducts) {
  const auto of = [](torch::Device device) {
    const Tensor x = drawn({2, 2, 8, 16}, device, 1);
    return torch::scaled_dot_product_attention(x, x, x).cpu();
  };
  const Tensor cpu = of(kCpu);
  at::globalContext().setSDPUseFlash(true);
  EXPECT_TRUE(of(kOnCard).equal(cpu));
  at::globalContext().setSDPUseFlash(false);
}

TEST(StandInCard, FreesEverything) {
  const std::uint64_t before = counts().live_bytes;
  train_on_pictures(kOnCard);
  train_on_words(kOnCard, {.dropout = 0.1});
  EXPECT_GT(counts().live_bytes_peak, before);
  EXPECT_EQ(counts().live_bytes, before);
}

TEST(CardGenerator, ManualSeedRepeatsARun) {
  const Program drops{.dropout = 0.3};
  const Named once = train_on_pictures(kOnCard, drops);
  EXPECT_TRUE(same(once, train_on_pictures(kOnCard, drops)));
  EXPECT_FALSE(same(once, train_on_pictures(kOnCard)));
  EXPECT_TRUE(same(train_on_words(kOnCard, drops), train_on_words(kOnCard, drops)));
}

TEST(CardGenerator, ItsStateIsSeedAndOffset) {
  torch::manual_seed(5);
  at::Generator generator = card_generator();
  EXPECT_EQ(generator.current_seed(), 5u);
  EXPECT_EQ(generator.get_offset(), 0u);
  const Tensor first = torch::rand({100}, kOnCard);
  EXPECT_EQ(generator.get_offset(), 4u);
  const Tensor state = generator.get_state();
  EXPECT_EQ(state.nbytes(), 16u);
  const at::Generator kept = generator.clone();
  const Tensor second = torch::randn({100}, kOnCard), dropped = torch::dropout(second, 0.5, true);
  EXPECT_FALSE(first.equal(torch::rand({100}, kOnCard)));
  torch::rand({100});  // draws from the CPU's generator
  generator.set_state(state);
  EXPECT_TRUE(second.equal(torch::randn({100}, kOnCard)));
  EXPECT_TRUE(dropped.equal(torch::dropout(second, 0.5, true)));
  EXPECT_EQ(kept.get_offset(), 4u);
  generator.set_offset(4);
  EXPECT_TRUE(second.equal(torch::randn({100}, kOnCard)));
  generator.set_current_seed(5);
  EXPECT_TRUE(first.equal(torch::rand({100}, kOnCard)));
}

TEST(CardGenerator, SharesAGraphsafeState) {
  at::Generator generator = card_generator();
  const at::Generator now = generator.graphsafe_get_state(), before = generator.clone();
  const Tensor first = torch::rand({100}, kOnCard);
  EXPECT_EQ(now.get_offset(), before.get_offset() + 4);
  generator.graphsafe_set_state(before.clone());
  EXPECT_TRUE(first.equal(torch::rand({100}, kOnCard)));
  EXPECT_EQ(now.get_offset(), before.get_offset() + 4);  // it now has the other state, not its own
  const Tensor second = torch::rand({100}, kOnCard);
  generator.graphsafe_set_state(now);
  EXPECT_TRUE(second.equal(torch::rand({100}, kOnCard)));
}

TEST(CardGenerator, LeavesOtherGeneratorsAlone) {
  const Tensor cpu = cpu_generator_state();
  const Tensor x = torch::ones({1000}, kOnCard);
  const Tensor dropped = std::get<0>(torch::native_dropout(x, 0.5, true));
  EXPECT_TRUE(cpu.equal(cpu_generator_state()));
  EXPECT_NEAR((dropped == 0).sum().item<double>(), 500, 100);
  EXPECT_FALSE(dropped.equal(std::get<0>(torch::native_dropout(x, 0.5, true))));

  const Tensor state = card_generator().get_state();
  const auto with_own = [&](std::uint64_t seed) {
    at::Generator own = at::globalContext().getAcceleratorHooksInterface(at::kCUDA).getNewGenerator();
    own.set_current_seed(seed);
    return torch::empty({10}, kOnCard).uniform_(0, 1, own);
  };
  EXPECT_TRUE(with_own(3).equal(with_own(3)));
  EXPECT_FALSE(with_own(3).equal(with_own(4)));
  EXPECT_TRUE(state.equal(card_generator().get_state()));
  EXPECT_THROW(torch::empty({10}, kOnCard).uniform_(0, 1, at::globalContext().defaultGenerator(kCpu)), c10::Error);
}

TEST(CardStreams, AreAThreadsOwn) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  const c10::Stream before = guard.getStream(kOnCard), other = guard.getStreamFromGlobalPool(kOnCard);
  EXPECT_EQ(before, guard.getDefaultStream(kOnCard));
  EXPECT_NE(before, other);
  {
    const c10::StreamGuard in(other);
    EXPECT_EQ(guard.getStream(kOnCard), other);
  }
  EXPECT_EQ(guard.getStream(kOnCard), before);
  const Counts counted = counts();
  torch::ones({2}, kOnCard).record_stream(other);
  torch::cuda::synchronize();
  EXPECT_EQ(counts().streams_recorded, counted.streams_recorded + 1);
  EXPECT_EQ(counts().synchronizations, counted.synchronizations + 1);
}

TEST(CardStreams, EventsAreDoneAtOnce) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  const Counts before = counts();
  c10::Event event(c10::DeviceType::CUDA);
  event.record(guard.getDefaultStream(kOnCard));
  event.block(guard.getStreamFromGlobalPool(kOnCard));
  EXPECT_TRUE(event.query());
  event.synchronize();
  const Counts after = counts();
  EXPECT_EQ(after.events_recorded, before.events_recorded + 1);
  EXPECT_EQ(after.events_blocked, before.events_blocked + 1);
  EXPECT_EQ(after.synchronizations, before.synchronizations + 1);
}

// If forward ran on several streams, the autograd engine makes one stream wait for the other.
TEST(CardStreams, BackwardFollowsForward) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  const Tensor x = drawn({8, 8}, kOnCard, 1).requires_grad_();
  Tensor y;
  {
    const c10::StreamGuard in(guard.getStreamFromGlobalPool(kOnCard));
    y = x.mm(x).tanh();
  }
  const Counts before = counts();
  y.sum().backward();
  EXPECT_GT(counts().events_blocked, before.events_blocked);
  const Tensor cpu = drawn({8, 8}, kCpu, 1).requires_grad_();
  cpu.mm(cpu).tanh().sum().backward();
  EXPECT_TRUE(x.grad().cpu().equal(cpu.grad()));
}

// After SetAllocator, the new allocator gets all requests.
class Counting final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    ++taken;
    return plain_allocator()->allocate(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  int taken = 0;
};

TEST(CardMemory, AnotherAllocatorTakesOver) {
  static auto* const another = new Counting;  // never freed, because torch keeps it
  Tensor x = torch::ones({4}, kOnCard);
  c10::SetAllocator(c10::DeviceType::CUDA, another, 255);
  const Tensor y = x + 1;
  EXPECT_EQ(another->taken, 1);
  x.resize_({100});
  EXPECT_EQ(another->taken, 2);
  x.cpu();
  torch::zeros({100}).copy_(x);
  EXPECT_EQ(another->taken, 2);
  EXPECT_EQ(x.narrow(0, 0, 4).sum().item<float>(), 4);
  c10::SetAllocator(c10::DeviceType::CUDA, plain_allocator(), 255);
}

}  // namespace
}  // namespace card_torch
