// SPDX-License-Identifier: Apache-2.0
// The runtime's functions about the cards, and about which card a thread uses.

#include "ullage/drycard/card/attributes.h"
#include "ullage/drycard/card/device_properties.h"
#include "ullage/drycard/card/kernel_arguments.h"
#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/uuid.h"
#include "ullage/drycard/card/work.h"

#include <climits>
#include <cstdio>
#include <cstring>

namespace ullage::drycard {
namespace {

template <typename Properties>
Properties properties_of(int ordinal) {
  const CardModel& card = machine().model;
  Properties made;
  std::memset(&made, 0, sizeof made);
  std::snprintf(made.name, sizeof made.name, "%.*s", static_cast<int>(card.product.size()), card.product.data());
  made.uuid = uuid_of(machine().card_of[ordinal]);
  made.totalGlobalMem = card.total;
  made.sharedMemPerBlock = CardModel::kSharedPerBlock;
  made.regsPerBlock = made.regsPerMultiprocessor = CardModel::kRegisters;
  made.warpSize = 32;
  made.memPitch = INT_MAX;
  made.maxThreadsPerBlock = 1024;
  made.maxThreadsDim[0] = made.maxThreadsDim[1] = 1024;
  made.maxThreadsDim[2] = 64;
  made.maxGridSize[0] = INT_MAX;
  made.maxGridSize[1] = made.maxGridSize[2] = 65535;
  made.totalConstMem = 65536;
  made.major = card.major;
  made.minor = card.minor;
  made.textureAlignment = made.surfaceAlignment = 512;
  made.texturePitchAlignment = 32;
  made.multiProcessorCount = card.multiprocessors;
  made.canMapHostMemory = 1;
  made.concurrentKernels = 1;
  made.ECCEnabled = card.ecc ? 1 : 0;
  made.pciBusID = bus_of(machine().card_of[ordinal]);
  made.asyncEngineCount = card.copy_engines;
  made.unifiedAddressing = 1;
  made.memoryBusWidth = card.bus_bits;
  made.l2CacheSize = card.l2;
  made.persistingL2CacheMaxSize = attribute_of(108, ordinal);
  made.maxThreadsPerMultiProcessor = card.threads_per_multiprocessor;
  made.streamPrioritiesSupported = made.globalL1CacheSupported = made.localL1CacheSupported = 1;
  made.sharedMemPerMultiprocessor = static_cast<std::size_t>(card.shared_per_multiprocessor);
  made.managedMemory = made.concurrentManagedAccess = made.computePreemptionSupported = 1;
  made.multiGpuBoardGroupID = ordinal;
  made.canUseHostPointerForRegisteredMem = made.cooperativeLaunch = 1;
  made.sharedMemPerBlockOptin = static_cast<std::size_t>(card.shared_per_block_optin);
  made.maxBlocksPerMultiProcessor = card.blocks_per_multiprocessor;
  made.accessPolicyMaxWindowSize = attribute_of(109, ordinal);
  made.reservedSharedMemPerBlock = static_cast<std::size_t>(attribute_of(111, ordinal));
  made.hostRegisterSupported = made.sparseCudaArraySupported = 1;
  made.memoryPoolsSupported = made.ipcEventSupported = made.unifiedFunctionPointers = 1;
  made.memoryPoolSupportedHandleTypes = 1;
  made.clusterLaunch = attribute_of(120, ordinal);
  if constexpr (requires { made.clockRate; }) {
    made.clockRate = card.clock_khz;
    made.memoryClockRate = card.memory_clock_khz;
    made.deviceOverlap = 1;
    made.cooperativeMultiDeviceLaunch = 1;
    made.singleToDoublePrecisionPerfRatio = attribute_of(87, ordinal);
  }
  return made;
}

Error check(int ordinal) {
  if (machine().visible == 0) return kNoDevice;
  return ordinal < 0 || ordinal >= machine().visible ? kInvalidDevice : kSuccess;
}

Error properties_12(void* properties, int ordinal, std::size_t bytes) {
  if (const Error error = check(ordinal); error != kSuccess) return error;
  const auto made = properties_of<DeviceProperties12>(ordinal);
  std::memcpy(properties, &made, bytes);
  return kSuccess;
}

}  // namespace

ULLAGE_CARD_API int cudaGetDeviceCount(int* count) {
  *count = machine().visible;
  return machine().visible == 0 ? noted(kNoDevice) : kSuccess;
}
// Torch's device guard calls this before each op.
ULLAGE_CARD_API int cudaGetDevice(int* ordinal) {
  if (checks_work()) clear_dead_stack();
  *ordinal = current_card();
  return machine().visible == 0 ? noted(kNoDevice) : kSuccess;
}
// Since CUDA 12 this also makes the context.
ULLAGE_CARD_API int cudaSetDevice(int ordinal) {
  if (const Error error = set_current_card(ordinal); error != kSuccess) return noted(error);
  return noted(use_card(ordinal));
}
ULLAGE_CARD_API int cudaInitDevice(int ordinal, unsigned, unsigned) { return noted(use_card(ordinal)); }
ULLAGE_CARD_API int cudaSetValidDevices(int*, int) { return kSuccess; }
ULLAGE_CARD_API int cudaSetDeviceFlags(unsigned) { return kSuccess; }
ULLAGE_CARD_API int cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceReset() { return kSuccess; }

// Writes CUDA 13's layout. In a program for CUDA 12 writes CUDA 11's layout, which libcudart.so.12 serves under this
// old name.
ULLAGE_CARD_API int cudaGetDeviceProperties(void* properties, int ordinal) {
  if (machine().cuda < 13) return noted(properties_12(properties, ordinal, kDeviceProperties11));
  if (const Error error = check(ordinal); error != kSuccess) return noted(error);
  *static_cast<DeviceProperties13*>(properties) = properties_of<DeviceProperties13>(ordinal);
  return kSuccess;
}
ULLAGE_CARD_API int cudaGetDeviceProperties_v2(void* properties, int ordinal) {
  return noted(properties_12(properties, ordinal, sizeof(DeviceProperties12)));
}
ULLAGE_CARD_API int cudaChooseDevice(int* ordinal, const void*) {
  *ordinal = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceGetAttribute(int* value, int attribute, int ordinal) {
  if (const Error error = check(ordinal); error != kSuccess) return noted(error);
  *value = attribute_of(attribute, ordinal);
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
  if (const Error error = check(ordinal); error != kSuccess) return noted(error);
  std::snprintf(text, static_cast<std::size_t>(length), "%s", bus_text(machine().card_of[ordinal]).c_str());
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceGetByPCIBusId(int* ordinal, const char* text) {
  const int card = card_at_bus(text);
  for (int i = 0; i < machine().visible; ++i) {
    if (machine().card_of[i] != card) continue;
    *ordinal = i;
    return kSuccess;
  }
  return noted(kInvalidDevice);
}

ULLAGE_CARD_API int cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  if (check(ordinal) != kSuccess || check(peer) != kSuccess) return noted(kInvalidDevice);
  *can = ordinal != peer ? 1 : 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceEnablePeerAccess(int peer, unsigned) {
  static bool enabled[kMostCards][kMostCards];
  if (check(peer) != kSuccess || peer == current_card()) return noted(kInvalidDevice);
  const std::lock_guard hold(lock());
  bool& is_enabled = enabled[current_card()][peer];
  if (is_enabled) return noted(kPeerAlreadyEnabled);
  is_enabled = true;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceDisablePeerAccess(int) { return kSuccess; }
ULLAGE_CARD_API int cudaDeviceGetP2PAttribute(int* value, int attribute, int, int) {
  constexpr int kAccess = 2;
  *value = attribute == kAccess ? 1 : 0;
  return kSuccess;
}

ULLAGE_CARD_API int cudaDeviceGetLimit(std::size_t* value, int limit) {
  constexpr std::size_t kStack = 1024;
  constexpr std::size_t kPrintf = 1 << 20;
  constexpr std::size_t kHeap = 8 << 20;
  *value = limit == 0 ? kStack : limit == 1 ? kPrintf : limit == 2 ? kHeap : 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceSetLimit(int, std::size_t) { return kSuccess; }
ULLAGE_CARD_API int cudaDeviceGetCacheConfig(int* config) {
  *config = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceSetCacheConfig(int) { return kSuccess; }

ULLAGE_CARD_API int cudaRuntimeGetVersion(int* version) {
  *version = machine().version;
  return kSuccess;
}
ULLAGE_CARD_API int cudaDriverGetVersion(int* version) {
  *version = machine().driver_version();
  return kSuccess;
}
ULLAGE_CARD_API int cudaProfilerStart() { return kSuccess; }
ULLAGE_CARD_API int cudaProfilerStop() { return kSuccess; }

}  // namespace ullage::drycard
