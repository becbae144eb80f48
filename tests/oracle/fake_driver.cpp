// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

#include "fake_device.h"

#include <cuda.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace ullage::oracle {

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;

// Stands for functions with any parameters. That is safe because the caller cleans up in this calling convention.
CUresult not_supported() { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult device_get_attribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;  // the device has none of the features
  return CUDA_SUCCESS;
}

CUresult get_error_string(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "refused by the stand-in driver";
  return CUDA_SUCCESS;
}

thread_local CUcontext current_context = reinterpret_cast<CUcontext>(0x10);  // any but null

CUresult ctx_get_current(CUcontext* context) {
  *context = current_context;
  return CUDA_SUCCESS;
}

CUresult ctx_set_current(CUcontext context) {
  current_context = context;
  return CUDA_SUCCESS;
}

CUresult mem_get_allocation_granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = kPage;
  return CUDA_SUCCESS;
}

CUresult mem_address_reserve(CUdeviceptr* address, size_t size, size_t, CUdeviceptr, unsigned long long) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  if (size == 0 || size % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  *address = device.take_addresses(size);
  device.ranges[*address] = size;
  return CUDA_SUCCESS;
}

CUresult mem_address_free(CUdeviceptr address, size_t size) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  const auto range = device.ranges.find(address);
  if (range == device.ranges.end() || range->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = device.maps.lower_bound(address);
  if (mapped != device.maps.end() && mapped->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  device.ranges.erase(range);
  device.give_addresses(address, size);
  return CUDA_SUCCESS;
}

CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* wanted,
                    unsigned long long) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  if (size == 0 || size % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_SUPPORTED;
  if (!device.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = device.next_handle++;
  device.physical[*handle] = {size, 1};
  return CUDA_SUCCESS;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  ++device.counters.given;
  return device.drop(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                 unsigned long long) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  const auto physical = device.physical.find(handle);
  const auto after = device.ranges.upper_bound(address);
  if (physical == device.physical.end() || after == device.ranges.begin() || offset != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto range = std::prev(after);
  if (address + size > range->first + range->second || physical->second.size != size) return CUDA_ERROR_INVALID_VALUE;
  if (!device.maps.emplace(address, FakeDevice::Map{size, handle}).second) return CUDA_ERROR_INVALID_VALUE;
  ++physical->second.references;
  return CUDA_SUCCESS;
}

CUresult mem_unmap(CUdeviceptr address, size_t size) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  const auto map = device.maps.find(address);
  if (map == device.maps.end() || map->second.size != size) return CUDA_ERROR_INVALID_VALUE;
  device.drop(map->second.handle);
  device.maps.erase(map);
  return CUDA_SUCCESS;
}

CUresult mem_set_access(CUdeviceptr address, size_t, const CUmemAccessDesc*, size_t) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  return device.maps.contains(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Function>
void* pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* driver_function(const char* name) {
  static const std::pair<std::string_view, void*> known[] = {
      {"cuDeviceGet", pointer(device_get)},
      {"cuDeviceGetAttribute", pointer(device_get_attribute)},
      {"cuGetErrorString", pointer(get_error_string)},
      {"cuCtxGetCurrent", pointer(ctx_get_current)},
      {"cuCtxSetCurrent", pointer(ctx_set_current)},
      {"cuMemGetAllocationGranularity", pointer(mem_get_allocation_granularity)},
      {"cuMemAddressReserve", pointer(mem_address_reserve)},
      {"cuMemAddressFree", pointer(mem_address_free)},
      {"cuMemCreate", pointer(mem_create)},
      {"cuMemRelease", pointer(mem_release)},
      {"cuMemMap", pointer(mem_map)},
      {"cuMemUnmap", pointer(mem_unmap)},
      {"cuMemSetAccess", pointer(mem_set_access)},
  };
  const auto* found = std::ranges::find(known, std::string_view(name), &std::pair<std::string_view, void*>::first);
  return found == std::end(known) ? pointer(not_supported) : found->second;
}

}  // namespace ullage::oracle
