// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcudart.so.13 with every function that libc10_cuda.so of torch 2.11 to 2.15 links to. With it,
// torch's real caching allocator runs without a GPU and without a driver.

#include "fake_cudart.h"
#include "fake_device.h"
#include "fake_driver.h"

#include <cuda_runtime_api.h>

#include <cstring>

namespace {

using ullage::oracle::FakeDevice;
using ullage::oracle::kPage;
using Guard = std::lock_guard<std::recursive_mutex>;

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t fail(cudaError_t error) {
  last_error = error;
  return error;
}

// What a cudaEvent_t points to.
struct FakeEvent {
  bool recorded = false;
  std::uint64_t queries = 0;  // since the event was recorded
};

FakeEvent& fake(cudaEvent_t event) { return *reinterpret_cast<FakeEvent*>(event); }

}  // namespace

extern "C" {

// ---- device ---------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return fail(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "stand-in device");
  properties->totalGlobalMem = FakeDevice::instance().settings.total;
  properties->major = 9;
  properties->multiProcessorCount = 1;
  properties->warpSize = 32;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  *total = device.settings.total;
  *free = device.settings.total - device.counters.used;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  *function = ullage::oracle::driver_function(symbol);
  if (status != nullptr) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// ---- errors ---------------------------------------------------------------------------------------------------------

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    default:
      return "cudaErrorOfTheStandIn";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "refused by the stand-in runtime";
}

// ---- memory ---------------------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** pointer, size_t size) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  *pointer = nullptr;
  if (size == 0) return cudaSuccess;
  const std::uint64_t bytes = (size + kPage - 1) / kPage * kPage;
  if (!device.charge(bytes)) return fail(cudaErrorMemoryAllocation);
  const std::uint64_t at = device.take_addresses(bytes);
  device.allocations[at] = bytes;
  *pointer = reinterpret_cast<void*>(at);
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  const auto found = device.allocations.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == device.allocations.end()) return fail(cudaErrorInvalidValue);
  ++device.counters.given;
  device.discharge(found->second);
  device.give_addresses(found->first, found->second);
  device.allocations.erase(found);
  return cudaSuccess;
}

// ---- streams: they have no work, so they are always done ------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  *stream = reinterpret_cast<cudaStream_t>(device.next_stream += 0x1000);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  ++device.counters.stream_waits;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  *status = cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 0;
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

// ---- events ---------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &fake(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  fake(event) = {true, 0};
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  auto& device = FakeDevice::instance();
  const Guard guard(device.lock);
  if (!fake(event).recorded || ++fake(event).queries >= device.settings.event_queries) return cudaSuccess;
  ++device.counters.events_not_ready;
  return fail(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  fake(event).recorded = false;  // the event is done; later queries succeed at once
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}

// ---- needed for linking only: they fail when called -----------------------------------------------------------------

#define ULLAGE_REFUSED(name, ...) \
  cudaError_t name(__VA_ARGS__) { return fail(cudaErrorNotSupported); }

ULLAGE_REFUSED(cudaDeviceEnablePeerAccess, int, unsigned)
ULLAGE_REFUSED(cudaMallocAsync, void**, size_t, cudaStream_t)
ULLAGE_REFUSED(cudaFreeAsync, void*, cudaStream_t)
ULLAGE_REFUSED(cudaMemcpy, void*, const void*, size_t, cudaMemcpyKind)
ULLAGE_REFUSED(cudaMemcpyAsync, void*, const void*, size_t, cudaMemcpyKind, cudaStream_t)
ULLAGE_REFUSED(cudaMemcpyPeerAsync, void*, int, const void*, int, size_t, cudaStream_t)
ULLAGE_REFUSED(cudaIpcGetMemHandle, cudaIpcMemHandle_t*, void*)
ULLAGE_REFUSED(cudaIpcOpenMemHandle, void**, cudaIpcMemHandle_t, unsigned)
ULLAGE_REFUSED(cudaIpcCloseMemHandle, void*)
ULLAGE_REFUSED(cudaDeviceGetDefaultMemPool, cudaMemPool_t*, int)
ULLAGE_REFUSED(cudaDeviceGetGraphMemAttribute, int, cudaGraphMemAttributeType, void*)
ULLAGE_REFUSED(cudaDeviceSetGraphMemAttribute, int, cudaGraphMemAttributeType, void*)
ULLAGE_REFUSED(cudaGraphNodeGetDependencies, cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*)
ULLAGE_REFUSED(cudaMemPoolGetAttribute, cudaMemPool_t, cudaMemPoolAttr, void*)
ULLAGE_REFUSED(cudaMemPoolSetAttribute, cudaMemPool_t, cudaMemPoolAttr, void*)
ULLAGE_REFUSED(cudaMemPoolSetAccess, cudaMemPool_t, const cudaMemAccessDesc*, size_t)
ULLAGE_REFUSED(cudaMemPoolTrimTo, cudaMemPool_t, size_t)

}  // extern "C"
