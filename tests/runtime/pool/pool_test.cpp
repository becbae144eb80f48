// SPDX-License-Identifier: Apache-2.0
#include "runtime/pooled.h"

#include "ullage/store/process_memory.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace ullage::runtime {
namespace {

std::uint64_t live() { return pooled().store().counts().live.count; }

TEST(Pool, ServesAlignedStoragesAndGetsThemBack) {
  pooled();
  const std::uint64_t before = live();
  for (const std::int64_t n : {1, 3, 1000, 16384, 100000, 3000000}) {
    const torch::Tensor t = torch::empty({n});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data_ptr()) % 64, 0u);
    EXPECT_EQ(live(), before + static_cast<std::uint64_t>(n) * 4);
    EXPECT_EQ(t.storage().data_ptr().get(), t.storage().data_ptr().get_context());
  }
  EXPECT_EQ(live(), before);
}

TEST(Pool, ServesZeroBytes) {
  pooled();
  const torch::Tensor t = torch::empty({0, 5});
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(torch::cat({t, torch::ones({2, 5})}).size(0), 2);
}

TEST(Pool, ForwardsStoragesMadeBeforeIt) {
  // The storage is made by the allocator that was there before the pool. That needs a process without a session yet.
  torch::Tensor before;
  if (Session::current() == nullptr) before = torch::ones({100000});
  pooled();
  void* raw = c10::GetDefaultCPUAllocator()->raw_allocate(1 << 20);
  c10::GetAllocator(c10::kCPU)->raw_deallocate(raw);
  before.reset();
  const std::uint64_t was = live();
  raw = c10::GetAllocator(c10::kCPU)->raw_allocate(1 << 20);
  EXPECT_EQ(live(), was + (1 << 20));
  c10::GetAllocator(c10::kCPU)->raw_deallocate(raw);
  EXPECT_EQ(live(), was);
}

TEST(Pool, CopiesData) {
  pooled();
  const torch::Tensor t = torch::arange(100000);
  auto copy = c10::GetAllocator(c10::kCPU)->clone(t.data_ptr(), t.nbytes());
  EXPECT_EQ(std::memcmp(copy.get(), t.data_ptr(), t.nbytes()), 0);
}

TEST(Pool, RefusesInTorchsOwnWordsAndStaysUsable) {
  pooled();
  const std::uint64_t before = live();
  const torch::Tensor a = torch::ones({1024, 1024});
  try {
    (void)torch::matmul(torch::ones({30000, 1}), torch::ones({1, 30000}));
    FAIL() << "3.6 GB were served under a budget of 1 GiB";
  } catch (const c10::OutOfMemoryError& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_NE(text.find("3.35 GiB (3600000000 bytes)"), std::string::npos) << text;
    EXPECT_NE(text.find("budget of 1.00 GiB (1073741824 bytes)"), std::string::npos) << text;
    EXPECT_NE(text.find("aten::mm"), std::string::npos) << text;
    EXPECT_NE(text.find("live"), std::string::npos) << text;
    EXPECT_NE(text.find("resident"), std::string::npos) << text;
  }
  EXPECT_EQ(test_slot().last_request.load(), 3600000000u);
  EXPECT_EQ(test_slot().last_op.get(), "aten::mm");
  EXPECT_GE(test_slot().refused.load(), 1u);
  EXPECT_EQ(torch::matmul(a, a)[0][0].item<float>(), 1024.0f);
  EXPECT_EQ(live(), before + a.nbytes());
}

TEST(Pool, TheBudgetItNamesIsTheOneThatServes) {
  pooled();
  try {
    (void)torch::empty({900, 1024, 1024}, torch::kByte);
    GTEST_SKIP() << "the machine's libraries left room for 900 MiB of 1 GiB";
  } catch (const c10::OutOfMemoryError& error) {
    const std::string text = error.what_without_backtrace();
    const std::size_t at = text.find("a budget of ");
    ASSERT_NE(at, std::string::npos) << text;
    const std::uint64_t named = std::stoull(text.substr(text.find('(', at) + 1));
    const std::uint64_t over = named - kTestBudget.count;
    EXPECT_NO_THROW((void)torch::empty({static_cast<std::int64_t>((900ull << 20) - over - (1 << 20))}, torch::kByte));
  }
}

TEST(Pool, ServesManyThreads) {
  pooled();
  const std::uint64_t before = live();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 200; ++i) {
        const torch::Tensor x = torch::full({1 + 777 * (i % 50), 3}, t);
        if (x.sum().item<double>() != double(t) * double(x.numel())) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(live(), before);
}

TEST(Pool, AForkedChildGoesOnAndWritesNoFigures) {
  pooled();
  const torch::Tensor x = torch::ones({500, 500});
  const std::uint64_t peak = test_slot().pool_live_peak.load();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    at::set_num_threads(1);  // GNU OpenMP does not survive a fork; a DataLoader's worker does the same
    torch::Tensor y = torch::ones({40, 1024, 1024}, torch::kByte);
    y += 1;
    const bool right = y[39][1023][1023].item<int>() == 2 && x.sum().item<double>() == 250000;
    usleep(30000);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(x.sum().item<double>(), 250000);
  EXPECT_LT(test_slot().pool_live_peak.load(), peak + (40 << 20)) << "the child's 40 MiB are not the parent's";
}

// The interface through which torch.profiler hears of memory (profile_memory).
struct Listener final : c10::MemoryReportingInfoBase {
  std::int64_t sum = 0;
  int calls = 0;
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    sum += size, ++calls;
  }
  bool memoryProfilingEnabled() const override { return true; }
};

TEST(Pool, ReportsToTheProfiler) {
  pooled();
  auto listener = std::make_shared<Listener>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, listener);
    const torch::Tensor t = torch::empty({1000});
    EXPECT_EQ(listener->sum, 4000);
  }
  EXPECT_GE(listener->calls, 1);
  auto again = std::make_shared<Listener>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, again);
  { const torch::Tensor t = torch::empty({1000}); }
  EXPECT_EQ(again->sum, 0) << "frees are reported as allocations are";
  EXPECT_EQ(again->calls, 2);
}

TEST(Pool, ResidentStaysWithinTwoPercentOfLiveAtThePeak) {
  pooled();
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(16, 64, 3).padding(1));
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor x = torch::ones({8, 16, 128, 128});
    torch::relu(conv->forward(x)).pow(2).mean().backward();
    conv->zero_grad();
  }
  const store::StoreCounts c = pooled().store().counts();
  EXPECT_LE(double(c.resident_peak.count), 1.02 * double(c.live_peak.count))
      << c.resident_peak.count << " resident of " << c.live_peak.count << " live";
}

}  // namespace
}  // namespace ullage::runtime
