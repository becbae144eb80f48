// SPDX-License-Identifier: Apache-2.0

// A library that a Python test loads with ctypes, to switch the hooks on and off and to count their calls.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/saved_tensors.h"
#include "ullage/runtime/python/python_process.h"

#include <atomic>

namespace ullage::runtime {
namespace {

struct Counting final : OpListener, SavedListener {
  std::atomic<long> ops{0}, open{0}, inputs{0}, saved_count{0}, unpacked{0}, released_count{0}, touched{0}, kernels{0},
      forward_kernels{0};
  std::atomic<long> allocations{0};  // torch.empty_strided, which no program here calls itself
  std::atomic<bool> slices{false};

  bool fits(const OpCall&) override { return !slices; }
  void begin(OpCall& call) override {
    ++ops, ++open;
    allocations += call.name == "aten::empty_strided";
    if (call.name == "ullage::compiled_kernel") {
      ++kernels;
      forward_kernels += grad_mode() && !in_backward();
    }
    inputs += static_cast<long>(call.inputs.size());
    for (const StorageUse& use : call.inputs) sum_ += *reinterpret_cast<const volatile char*>(use.begin.value);
  }
  void end(OpCall&, std::span<const c10::IValue>, bool) noexcept override { --open; }
  void saved(const StorageUse&, SavedKind) override { ++saved_count; }
  void unpacking(const StorageUse&) override { ++unpacked; }
  void released(Address) noexcept override { ++released_count; }

 private:
  std::atomic<long> sum_{0};  // summed so that the bytes are really read
};

Counting& counting() {
  static auto* made = new Counting;
  return *made;
}
std::unique_ptr<Interceptor> interceptor;
std::unique_ptr<SavedTensorHooks> hooks;

}  // namespace
}  // namespace ullage::runtime

using namespace ullage::runtime;

extern "C" {
// Returns 0 on success. `record`: intercept ops by RecordFunction instead of a dispatch key.
int test_on(int record, int slices) {
  counting().slices = slices != 0;
  set_touch([](ullage::Address, ullage::Bytes) { ++counting().touched; });
  set_follows(&Interceptor::sees_this_thread);
  set_recorded_as_a_whole(&recorded_as_a_whole);
  auto made = Interceptor::install({&counting()},
                                   record != 0 ? Interceptor::Way::RecordFunction : Interceptor::Way::DispatchKey);
  if (!made) return 1;
  interceptor = std::move(*made);
  auto on = SavedTensorHooks::install(counting());
  if (!on) return 2;
  hooks = std::move(*on);
  interceptor->enable();
  return 0;
}
void test_off() {
  hooks.reset();
  interceptor.reset();
}
void test_arm() { Interceptor::arm_this_thread(); }
long test_ops() { return counting().ops; }
long test_open() { return counting().open; }
long test_inputs() { return counting().inputs; }
long test_saved() { return counting().saved_count; }
long test_unpacked() { return counting().unpacked; }
long test_released() { return counting().released_count; }
long test_touched() { return counting().touched; }
long test_kernels() { return counting().kernels; }
long test_allocations() { return counting().allocations; }
long test_forward_kernels() { return counting().forward_kernels; }
}
