// SPDX-License-Identifier: Apache-2.0
// Code that is loaded at run time (by Triton, users of NVRTC, torch's own jiterator). Any code is accepted, and its
// kernels launch like all others. In runs with checks the machine code is kept, so that launches' arguments can be
// looked at. Text (PTX) and containers are not read: these launches are counted as unread.

#include "ullage/drycard/card/kernels.h"
#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/streams.h"
#include "ullage/drycard/card/work.h"

#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ullage::drycard {
namespace {

Error make_handle(void** handle) {
  static std::atomic<Address> next{0x40d00000};
  *handle = reinterpret_cast<void*>(next.fetch_add(16));
  return kSuccess;
}

constexpr std::size_t kLeastImage = 64;  // an ELF file's header

struct Loaded {
  std::map<const void*, std::vector<std::uint8_t>> modules;
  std::map<const void*, KernelFacts> kernels;
  std::set<std::string> names;
};
Loaded& loaded() {
  static Loaded* all = new Loaded;
  return *all;
}

Error load(void** module, const void* image) {
  make_handle(module);
  if (!checks_work()) return kSuccess;
  const std::span<const std::uint8_t> code = machine_code_at(image);
  const std::lock_guard hold(lock());
  loaded().modules[*module].assign(code.begin(), code.end());
  return kSuccess;
}

Error find_kernel(void** kernel, const void* module, const char* name) {
  make_handle(kernel);
  if (!checks_work() || name == nullptr) return kSuccess;
  const std::lock_guard hold(lock());
  const auto found = loaded().modules.find(module);
  if (found == loaded().modules.end()) return kSuccess;
  const KernelCode code = kernel_code(found->second, name);
  KernelFacts& facts = loaded().kernels[*kernel];
  facts.name = loaded().names.emplace(name).first->c_str();
  facts.words = ArgumentWords(code.arguments);
  facts.is_known = !code.arguments.empty();
  facts.code = code.size;
  return kSuccess;
}

Error launch_kernel(const void* kernel, const void* stream, void* const* arguments) {
  if (const Error error = use_current(); error != kSuccess) return error;
  note_work(stream, 1);
  if (!checks_work()) return kSuccess;
  const std::lock_guard hold(lock());
  give_launch(stream, loaded().kernels[kernel], arguments);
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

ULLAGE_CARD_API int cuModuleLoad(void** module, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  return load(module, image.size() < kLeastImage ? nullptr : image.data());
}
ULLAGE_CARD_API int cuModuleLoadData(void** module, const void* image) { return load(module, image); }
ULLAGE_CARD_API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return load(module, image);
}
ULLAGE_CARD_API int cuModuleLoadFatBinary(void** module, const void*) { return make_handle(module); }
ULLAGE_CARD_API int cuModuleUnload(void*) { return kSuccess; }
ULLAGE_CARD_API int cuModuleGetFunction(void** function, void* module, const char* name) {
  return find_kernel(function, module, name);
}
ULLAGE_CARD_API int cuModuleGetFunctionCount(unsigned* count, void*) {
  *count = 1;
  return kSuccess;
}
ULLAGE_CARD_API int cuModuleGetGlobal_v2(Address* at, std::size_t* size, void*, const char*) {
  return global(at, size);
}
ULLAGE_CARD_API int cuLibraryLoadData(void** library, const void* image) { return load(library, image); }
ULLAGE_CARD_API int cuLibraryLoadFromFile(void** library, const char*) { return make_handle(library); }
ULLAGE_CARD_API int cuLibraryUnload(void*) { return kSuccess; }
ULLAGE_CARD_API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return find_kernel(kernel, library, name);
}
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

ULLAGE_CARD_API int cuLaunchKernel(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   void* stream, void** arguments, void**) {
  return launch_kernel(kernel, stream, arguments);
}
ULLAGE_CARD_API int cuLaunchKernelEx(const LaunchConfig* config, void* kernel, void** arguments, void**) {
  return launch_kernel(kernel, config->stream, arguments);
}
ULLAGE_CARD_API int cuLaunchCooperativeKernel(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                              unsigned, void* stream, void** arguments) {
  return launch_kernel(kernel, stream, arguments);
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
