// SPDX-License-Identifier: Apache-2.0
// Kernels of the runtime: the program registers them when it is loaded. A launch is only counted; with checks, the
// addresses among its arguments are checked too (work.h). Questions about a kernel get the same figures for all
// (kernels.h).

#include "ullage/drycard/card/fat_binaries.h"
#include "ullage/drycard/card/kernel_arguments.h"
#include "ullage/drycard/card/kernels.h"
#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/streams.h"
#include "ullage/drycard/card/work.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::drycard {
namespace {

int capability() { return machine().model.major * 10 + machine().model.minor; }

Error launch_function(const void* kernel, void* const* arguments, const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (!code_for(kernel, capability())) return kNoKernelImage;
  note_work(stream, 1);
  if (!checks_work()) return kSuccess;
  const std::lock_guard hold(lock());
  give_launch(stream, kernel_facts(kernel, capability()), arguments);
  return kSuccess;
}

struct Configuration {
  Dim3 grid;
  Dim3 block;
  std::size_t shared;
  void* stream;
};
thread_local std::vector<Configuration> configurations;

// Returns the address of a module's variable, which stays the same. Its bytes are not counted: on a real card they are
// part of the context.
void* address_of_symbol(const void* symbol) {
  static std::map<const void*, Address>* known = new std::map<const void*, Address>;
  const std::lock_guard hold(lock());
  Address& at = (*known)[symbol];
  if (at == 0) at = take_addresses(current_card(), kPage);
  return reinterpret_cast<void*>(at);
}

}  // namespace

void give_launch(const void* stream, KernelFacts& kernel, void* const* arguments) {
  if (std::exchange(kernel.is_new, false)) {
    ledger().kernels.fetch_add(1, std::memory_order_relaxed);
    ledger().kernel_code.fetch_add(kernel.code, std::memory_order_relaxed);
  }
  const bool is_read = kernel.is_known && arguments != nullptr;
  if (!is_read) ledger().unread_launches.fetch_add(1, std::memory_order_relaxed);
  give_kernel(stream, kernel.name, is_read ? kernel.words.addresses(arguments) : std::vector<Address>());
}

FunctionAttributes plain_kernel() {
  FunctionAttributes made = {};
  made.most_threads = 1024;
  made.registers = kRegistersOfKernel;
  made.ptx_version = made.binary_version = capability();
  made.most_dynamic_shared = CardModel::kSharedPerBlock;
  return made;
}

int blocks_per_multiprocessor(int threads, std::size_t shared) {
  const CardModel& card = machine().model;
  if (threads <= 0) return 0;
  const int rounded = (threads + 31) / 32 * 32;
  int blocks = std::min(card.threads_per_multiprocessor / rounded, card.blocks_per_multiprocessor);
  blocks = std::min(blocks, CardModel::kRegisters / (rounded * kRegistersOfKernel));
  if (shared > 0) {
    // From compute capability 8.0 on, the system takes 1 KiB of each block's shared memory.
    const std::size_t each = shared + (card.major >= 8 ? 1024 : 0);
    blocks = std::min(blocks, static_cast<int>(static_cast<std::size_t>(card.shared_per_multiprocessor) / each));
  }
  return blocks;
}

ULLAGE_CARD_API int cudaLaunchKernel(const void* kernel, Dim3, Dim3, void** arguments, std::size_t, void* stream) {
  return noted(launch_function(kernel, arguments, stream));
}
ULLAGE_CARD_API int cudaLaunchKernelExC(const LaunchConfig* config, const void* kernel, void** arguments) {
  return noted(launch_function(kernel, arguments, config->stream));
}
ULLAGE_CARD_API int cudaLaunchCooperativeKernel(const void* kernel, Dim3, Dim3, void** arguments, std::size_t,
                                                void* stream) {
  return noted(launch_function(kernel, arguments, stream));
}
ULLAGE_CARD_API int __cudaLaunchKernel(void* kernel, Dim3, Dim3, void** arguments, std::size_t, void* stream) {
  return noted(launch_function(kernel, arguments, stream));
}
ULLAGE_CARD_API int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  note_work(stream, 0);
  function(data);
  return kSuccess;
}
ULLAGE_CARD_API int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned) {
  function(stream, kSuccess, data);
  return kSuccess;
}
ULLAGE_CARD_API int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return cudaLaunchHostFunc(stream, function, data);
}
ULLAGE_CARD_API int cuStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned) {
  return cudaStreamAddCallback(stream, function, data, 0);
}

ULLAGE_CARD_API int cudaFuncGetAttributes(FunctionAttributes* attributes, const void* function) {
  const std::optional<int> code = code_for(function, capability());
  if (!code) return noted(kNoKernelImage);
  *attributes = plain_kernel();
  attributes->ptx_version = attributes->binary_version = *code;
  return kSuccess;
}
ULLAGE_CARD_API int cudaFuncSetAttribute(const void*, int, int) { return kSuccess; }
ULLAGE_CARD_API int cudaFuncSetCacheConfig(const void*, int) { return kSuccess; }
ULLAGE_CARD_API int cudaKernelSetAttributeForDevice(void*, int, int, int) { return kSuccess; }
ULLAGE_CARD_API int cudaFuncGetName(const char** name, const void*) {
  *name = "kernel";
  return kSuccess;
}
ULLAGE_CARD_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads,
                                                                  std::size_t shared) {
  *blocks = blocks_per_multiprocessor(threads, shared);
  return kSuccess;
}
ULLAGE_CARD_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                           std::size_t shared, unsigned) {
  *blocks = blocks_per_multiprocessor(threads, shared);
  return kSuccess;
}
ULLAGE_CARD_API int cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* shared, const void*, int blocks, int) {
  *shared = static_cast<std::size_t>(machine().model.shared_per_multiprocessor / std::max(blocks, 1));
  return kSuccess;
}
ULLAGE_CARD_API int cudaOccupancyMaxActiveClusters(int* clusters, const void*, const LaunchConfig*) {
  *clusters = machine().model.multiprocessors / kBlocksOfCluster;
  return kSuccess;
}
ULLAGE_CARD_API int cudaOccupancyMaxPotentialClusterSize(int* size, const void*, const LaunchConfig*) {
  *size = kBlocksOfCluster;
  return kSuccess;
}

ULLAGE_CARD_API int __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return kSuccess;
}
ULLAGE_CARD_API int cudaGetKernel(void** kernel, const void* function) { return __cudaGetKernel(kernel, function); }
ULLAGE_CARD_API int cudaGetFuncBySymbol(void** kernel, const void* function) {
  return __cudaGetKernel(kernel, function);
}
ULLAGE_CARD_API char __cudaInitModule(void**) { return 1; }
ULLAGE_CARD_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, void* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
ULLAGE_CARD_API int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  if (configurations.empty()) return kInvalidValue;
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  return kSuccess;
}
// The program calls these while it is loaded, for torch hundreds of thousands of times. So they keep little: of a
// module the wrapper, of a kernel its module and name, of a variable nothing.
ULLAGE_CARD_API void** __cudaRegisterFatBinary(void* wrapper) { return register_fat_binary(wrapper); }
ULLAGE_CARD_API void __cudaRegisterFatBinaryEnd(void**) {}
ULLAGE_CARD_API void __cudaUnregisterFatBinary(void**) {}
// CUDA passes more arguments: a number of threads and others. They are not needed.
ULLAGE_CARD_API void __cudaRegisterFunction(void** module, const char* function, char*, const char* name) {
  register_function(module, function, name);
}
ULLAGE_CARD_API void __cudaRegisterVar() {}
ULLAGE_CARD_API void __cudaRegisterManagedVar() {}

ULLAGE_CARD_API int cudaGetSymbolAddress(void** place, const void* symbol) {
  if (const Error error = use_current(); error != kSuccess) return noted(error);
  *place = address_of_symbol(symbol);
  return kSuccess;
}
ULLAGE_CARD_API int cudaGetSymbolSize(std::size_t* size, const void*) {
  *size = 0;
  return kSuccess;
}

}  // namespace ullage::drycard
