// SPDX-License-Identifier: Apache-2.0
// Code that is loaded at run time (by Triton, users of NVRTC, torch's own jiterator). Any code is accepted, and its
// kernels launch like all others.

#include "ullage/drycard/card/kernels.h"
#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/streams.h"

#include <atomic>

namespace ullage::drycard {
namespace {

Error make_handle(void** handle) {
  static std::atomic<Address> next{0x40d00000};
  *handle = reinterpret_cast<void*>(next.fetch_add(16));
  return kSuccess;
}

Error launch(const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  note_work(stream, 1);
  return kSuccess;
}

// CUfunction_attribute
int attribute_of_kernel(int attribute) {
  const FunctionAttributes plain = plain_kernel();
  switch (attribute) {
    case 0:
      return plain.most_threads;
    case 4:
      return plain.registers;
    case 5:
      return plain.ptx_version;
    case 6:
      return plain.binary_version;
    case 8:
      return plain.most_dynamic_shared;
    default:
      return 0;
  }
}

Error global(Address* at, std::size_t* size) {
  const std::lock_guard hold(lock());
  if (at != nullptr) *at = take_addresses(current_card(), kPage);
  if (size != nullptr) *size = 8;
  return kSuccess;
}

}  // namespace

ULLAGE_CARD_API int cuModuleLoad(void** module, const char*) { return make_handle(module); }
ULLAGE_CARD_API int cuModuleLoadData(void** module, const void*) { return make_handle(module); }
ULLAGE_CARD_API int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return make_handle(module);
}
ULLAGE_CARD_API int cuModuleLoadFatBinary(void** module, const void*) { return make_handle(module); }
ULLAGE_CARD_API int cuModuleUnload(void*) { return kSuccess; }
ULLAGE_CARD_API int cuModuleGetFunction(void** function, void*, const char*) { return make_handle(function); }
ULLAGE_CARD_API int cuModuleGetFunctionCount(unsigned* count, void*) {
  *count = 1;
  return kSuccess;
}
ULLAGE_CARD_API int cuModuleGetGlobal_v2(Address* at, std::size_t* size, void*, const char*) {
  return global(at, size);
}
ULLAGE_CARD_API int cuLibraryLoadData(void** library, const void*) { return make_handle(library); }
ULLAGE_CARD_API int cuLibraryLoadFromFile(void** library, const char*) { return make_handle(library); }
ULLAGE_CARD_API int cuLibraryUnload(void*) { return kSuccess; }
ULLAGE_CARD_API int cuLibraryGetKernel(void** kernel, void*, const char*) { return make_handle(kernel); }
ULLAGE_CARD_API int cuLibraryGetModule(void** module, void*) { return make_handle(module); }
ULLAGE_CARD_API int cuLibraryGetGlobal(Address* at, std::size_t* size, void*, const char*) { return global(at, size); }
ULLAGE_CARD_API int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return kSuccess;
}
ULLAGE_CARD_API int cuKernelGetAttribute(int* value, int attribute, void*, int) {
  *value = attribute_of_kernel(attribute);
  return kSuccess;
}
ULLAGE_CARD_API int cuKernelSetAttribute(int, int, void*, int) { return kSuccess; }
ULLAGE_CARD_API int cuFuncGetAttribute(int* value, int attribute, void*) {
  *value = attribute_of_kernel(attribute);
  return kSuccess;
}
ULLAGE_CARD_API int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
ULLAGE_CARD_API int cuFuncSetCacheConfig(void*, int) { return kSuccess; }
ULLAGE_CARD_API int cuFuncGetName(const char** name, void*) {
  *name = "kernel";
  return kSuccess;
}
ULLAGE_CARD_API int cuLinkCreate_v2(unsigned, int*, void**, void** state) { return make_handle(state); }
ULLAGE_CARD_API int cuLinkCreate(unsigned, int*, void**, void** state) { return make_handle(state); }
ULLAGE_CARD_API int cuLinkAddData_v2() { return kSuccess; }
ULLAGE_CARD_API int cuLinkAddData() { return kSuccess; }
ULLAGE_CARD_API int cuLinkComplete(void*, void** cubin, std::size_t* size) {
  static char none[16];
  *cubin = none;
  if (size != nullptr) *size = sizeof none;
  return kSuccess;
}
ULLAGE_CARD_API int cuLinkDestroy(void*) { return kSuccess; }

ULLAGE_CARD_API int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   void* stream, void**, void**) {
  return launch(stream);
}
ULLAGE_CARD_API int cuLaunchKernelEx(const LaunchConfig* config, void*, void**, void**) {
  return launch(config->stream);
}
ULLAGE_CARD_API int cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                              unsigned, void* stream, void**) {
  return launch(stream);
}
ULLAGE_CARD_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, std::size_t shared) {
  *blocks = blocks_per_multiprocessor(threads, shared);
  return kSuccess;
}
ULLAGE_CARD_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int threads,
                                                                         std::size_t shared, unsigned) {
  *blocks = blocks_per_multiprocessor(threads, shared);
  return kSuccess;
}
ULLAGE_CARD_API int cuOccupancyMaxActiveClusters(int* clusters, void*, const LaunchConfig*) {
  *clusters = machine().model.multiprocessors / kBlocksOfCluster;
  return kSuccess;
}
ULLAGE_CARD_API int cuOccupancyMaxPotentialClusterSize(int* size, void*, const LaunchConfig*) {
  *size = kBlocksOfCluster;
  return kSuccess;
}
ULLAGE_CARD_API int cuTensorMapEncodeTiled() { return kSuccess; }
ULLAGE_CARD_API int cuTensorMapReplaceAddress() { return kSuccess; }
ULLAGE_CARD_API int cuStreamWriteValue32_v2() { return kSuccess; }
ULLAGE_CARD_API int cuStreamWaitValue32_v2() { return kSuccess; }

ULLAGE_CARD_API int cudaLibraryLoadData(void** library) { return make_handle(library); }
ULLAGE_CARD_API int cudaLibraryLoadFromFile(void** library) { return make_handle(library); }
ULLAGE_CARD_API int cudaLibraryUnload(void*) { return kSuccess; }
ULLAGE_CARD_API int cudaLibraryGetKernel(void** kernel, void*, const char*) { return make_handle(kernel); }

}  // namespace ullage::drycard
