// SPDX-License-Identifier: Apache-2.0
// Functions asked for by name: the driver's, from this library. One that is not here counts as unknown when it is asked
// for, and does nothing and succeeds when it is called.

#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/unknown.h"

#include <dlfcn.h>

#include <string>

namespace ullage::drycard {
namespace {

int does_nothing() { return kSuccess; }

void* own_library() {
  static void* const handle = [] {
    Dl_info info;
    if (::dladdr(reinterpret_cast<void*>(&does_nothing), &info) == 0) return static_cast<void*>(nullptr);
    return ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return handle;
}

// The newest variant that this library has: callers ask for "cuMemAlloc" and mean cuMemAlloc_v2.
void* find_function(const std::string& name) {
  void* library = own_library();
  if (library == nullptr) return nullptr;
  for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
    if (void* found = ::dlsym(library, (name + suffix).c_str())) return found;
  }
  return nullptr;
}

// Those whose newest variant takes other arguments than the one that callers mean by the plain name.
const char* exact_variant(const std::string& name, unsigned version) {
  if (name == "cuCtxCreate") return version >= 13000 ? "cuCtxCreate_v4" : "cuCtxCreate_v2";
  if (name == "cuStreamGetCaptureInfo")
    return version >= 13000 ? "cuStreamGetCaptureInfo_v3" : "cuStreamGetCaptureInfo_v2";
  if (name == "cuCtxGetDevice") return "cuCtxGetDevice";
  return nullptr;
}

void* entry_point(const char* symbol, unsigned version) {
  const std::string name = symbol;
  const char* exact = exact_variant(name, version);
  void* found = exact != nullptr ? ::dlsym(own_library(), exact) : find_function(name);
  if (found != nullptr) return found;
  ullage_drycard_unknown(symbol);
  return reinterpret_cast<void*>(&does_nothing);
}

}  // namespace

ULLAGE_CARD_API int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                     unsigned long long, int* status) {
  *function = entry_point(symbol, version);
  if (status != nullptr) *status = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* status) {
  *function = entry_point(symbol, static_cast<unsigned>(machine().version()));
  if (status != nullptr) *status = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t, int* status) {
  *function = entry_point(symbol, static_cast<unsigned>(version));
  if (status != nullptr) *status = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t) {
  *function = entry_point(symbol, static_cast<unsigned>(version));
  return kSuccess;
}

}  // namespace ullage::drycard
