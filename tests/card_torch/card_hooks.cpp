// SPDX-License-Identifier: Apache-2.0
// What torch asks of CUDA besides ops: whether there is a card, its generator and its allocator. No cuDNN, no cuBLAS.

#include "card_generator.h"
#include "card_parts.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <memory>

namespace card_torch {
namespace {

using c10::DeviceIndex;

class Hooks final : public at::CUDAHooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex /*index*/) const override { return true; }
  void init() const override {}

  DeviceIndex deviceCount() const override { return 1; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex /*to*/) const override {}
  DeviceIndex exchangeDevice(DeviceIndex /*to*/) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex /*to*/) const override { return 0; }
  void deviceSynchronize(DeviceIndex /*index*/) const override { ++counters().synchronizations; }

  const at::Generator& getDefaultGenerator(DeviceIndex /*index*/) const override { return default_generator(); }
  at::Generator getNewGenerator(DeviceIndex /*index*/) const override { return at::make_generator<CardGenerator>(); }

  c10::Allocator* getCUDADeviceAllocator() const override { return c10::GetAllocator(c10::DeviceType::CUDA); }
  // Pinning is not imitated: pinned memory is ordinary host memory.
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  bool isPinnedPtr(const void* /*at*/) const override { return false; }
  at::Device getDeviceFromPtr(void* /*at*/) const override { return kCard; }
  std::string showConfig() const override { return "a stand-in card on the CPU\n"; }
};

}  // namespace

void register_hooks() {
  at::CUDAHooksRegistry()->Register("CUDAHooks", [](at::CUDAHooksArgs) -> std::unique_ptr<at::CUDAHooksInterface> {
    return std::make_unique<Hooks>();
  });
}

}  // namespace card_torch
