// SPDX-License-Identifier: Apache-2.0
// Makes each allocation of a step fail in turn. Each time the program must get an out-of-memory exception, no byte may
// leak, and the next step must run.
#include "runtime/pooled.h"

#include <c10/core/Allocator.h>

#include <atomic>

namespace ullage::runtime {
namespace {

// An allocator in front of the pool that refuses the k-th request.
class Injector final : public c10::Allocator {
 public:
  explicit Injector(c10::Allocator& pool) : pool_(pool) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return pool_.allocate(bytes);  // oneDNN asks for zero bytes of scratch, which never fails
    ++seen;
    if (fail_in > 0 && --fail_in == 0) TORCH_CHECK_WITH(OutOfMemoryError, false, "injected");
    return pool_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return pool_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { pool_.copy_data(to, from, bytes); }

  std::atomic<int> seen{0};
  std::atomic<int> fail_in{0};

 private:
  c10::Allocator& pool_;
};

TEST(PoolInjection, EveryAllocationOfAStepMayFail) {
  pooled();
  auto* injector = new Injector(*c10::GetAllocator(c10::kCPU));
  c10::SetAllocator(c10::kCPU, injector, 255);
  SmallStep small;
  small.run();
  small.run();
  const int first = injector->seen;
  small.run();
  const int in_a_step = injector->seen - first;
  ASSERT_GT(in_a_step, 50);

  const auto live_at_rest = [&] {
    small.adam.zero_grad();
    return pooled().store().counts().live;
  };
  const Bytes base = live_at_rest();
  int refused = 0;
  for (int k = 1; k <= in_a_step; ++k) {
    injector->fail_in = k;
    try {
      small.run();
      ADD_FAILURE() << "allocation " << k << " of " << in_a_step << " was refused and nobody said so";
    } catch (const c10::OutOfMemoryError&) {
      ++refused;
    } catch (const std::exception& other) {
      ADD_FAILURE() << "allocation " << k << ": another exception came out: " << other.what();
    }
    injector->fail_in = 0;
    ASSERT_EQ(live_at_rest(), base) << "allocation " << k << " leaked";
  }
  EXPECT_EQ(refused, in_a_step);
  EXPECT_TRUE(std::isfinite(small.run()));
}

}  // namespace
}  // namespace ullage::runtime
