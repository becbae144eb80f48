// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/cudnn_library.h"

#include "ullage/drycard/card/process.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace ullage::drycard {
namespace {

constexpr int kDeviceDescriptor = 38;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
constexpr int kDeviceJson = 2702;      // CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION
constexpr int kTypeCharacter = 24;     // CUDNN_TYPE_CHAR

// Writes the 23 members that cuDNN 9.20 requires. If one is missing, cuDNN's log names it (CUDNN_LOGLEVEL_DBG=2).
int write_description(const CardModel& card, char* text, std::size_t room) {
  return std::snprintf(
      text, room,
      R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":%d,)"
      R"("multiProcessorCount":%d,"warpSize":32,"maxSharedMemoryPerBlock":%d,"maxSharedMemoryPerBlockOptin":%d,)"
      R"("reservedSharedMemoryPerBlock":%d,"maxRegistersPerSM":%d,"maxCtasPerSM":%d,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":%d,"pciDeviceId":%d,"isTccDriver":1,"supportCoopLaunch":1,"totalGlobalMem":%llu,)"
      R"("smClockRateKHz":%d,"memClockRateKHz":%d,"l2CacheSize":%d,"cudaDeviceId":0,"deviceVer":%d,"driverVer":%d,)"
      R"("deviceName":"%.*s"})",
      CardModel::kRegisters, card.multiprocessors, CardModel::kSharedPerBlock, card.shared_per_block_optin,
      card.major >= 8 ? 1024 : 0, CardModel::kRegisters, card.blocks_per_multiprocessor,
      card.threads_per_multiprocessor, card.pci_device, static_cast<unsigned long long>(card.total), card.clock_khz,
      card.memory_clock_khz, card.l2, card.major * 100 + card.minor * 10, machine().driver_version(),
      static_cast<int>(card.product.size()), card.product.data());
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool describe_card(CudnnLibrary& library) {
  std::array<char, 2048> text{};
  const int length = write_description(machine().model, text.data(), text.size());
  return length > 0 && static_cast<std::size_t>(length) < text.size() &&
         library.create(kDeviceDescriptor, &library.card) == 0 &&
         library.set(library.card, kDeviceJson, kTypeCharacter, length, text.data()) == 0 &&
         library.finalize(library.card) == 0;
}

bool load(CudnnLibrary& library) {
  const char* path = std::getenv("ULLAGE_DRYCARD_CUDNN_LIBRARY");
  if (path == nullptr || *path == '\0') return false;
  void* file = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return file != nullptr && find(file, "cudnnGetVersion", library.version) &&
         find(file, "cudnnBackendCreateDescriptor", library.create) &&
         find(file, "cudnnBackendDestroyDescriptor", library.destroy) &&
         find(file, "cudnnBackendFinalize", library.finalize) && find(file, "cudnnBackendSetAttribute", library.set) &&
         find(file, "cudnnBackendGetAttribute", library.get) && describe_card(library);
}

}  // namespace

const CudnnLibrary* cudnn_library() {
  static CudnnLibrary library;
  static const bool loaded = load(library);
  return loaded ? &library : nullptr;
}

}  // namespace ullage::drycard
