// SPDX-License-Identifier: Apache-2.0
// The calls by which a program looks up driver functions by name (cuGetProcAddress and others). If this library has the
// function, the program gets it. Otherwise the program gets a stand-in that does nothing and returns success. When it
// is called, the dry run reports its name among the unknown functions (ullage_drycard_unknown()). Looking it up does
// not count, because torch looks up many functions and calls few.

#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/unknown.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <string>
#include <utility>

namespace ullage::drycard {
namespace {

int does_nothing() { return kSuccess; }

// Stand-ins for the names that were looked up and are not here. Each knows its index in the list of names. Above
// kMostStandIns names, does_nothing() is returned, whose calls are not counted.
constexpr std::size_t kMostStandIns = 256;
std::string stand_in_names[kMostStandIns];
std::atomic<std::size_t> stand_ins{0};

template <std::size_t place>
int stands_in() {
  return ullage_drycard_unknown(stand_in_names[place].c_str());
}

template <std::size_t... places>
constexpr std::array<int (*)(), sizeof...(places)> all_stand_ins(std::index_sequence<places...>) {
  return {&stands_in<places>...};
}

void* stand_in(const std::string& name) {
  static constexpr auto kStandIns = all_stand_ins(std::make_index_sequence<kMostStandIns>{});
  const std::lock_guard hold(lock());
  const std::size_t count = stand_ins.load();
  for (std::size_t i = 0; i < count; ++i) {
    if (stand_in_names[i] == name) return reinterpret_cast<void*>(kStandIns[i]);
  }
  if (count == kMostStandIns) return reinterpret_cast<void*>(&does_nothing);
  stand_in_names[count] = name;
  stand_ins.store(count + 1);
  return reinterpret_cast<void*>(kStandIns[count]);
}

void* own_library() {
  static void* const handle = [] {
    Dl_info info;
    if (::dladdr(reinterpret_cast<void*>(&does_nothing), &info) == 0) return static_cast<void*>(nullptr);
    return ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return handle;
}

// Returns the newest variant that this library has: callers ask for "cuMemAlloc" and mean cuMemAlloc_v2.
void* find_function(const std::string& name) {
  void* library = own_library();
  if (library == nullptr) return nullptr;
  for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
    if (void* found = ::dlsym(library, (name + suffix).c_str())) return found;
  }
  return nullptr;
}

// Returns the variant of a function that callers of this CUDA version expect for the plain name, if that is not simply
// the newest variant; else null. The newest variants of these three take other arguments.
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
  return found != nullptr ? found : stand_in(name);
}

}  // namespace

ULLAGE_CARD_API int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                     unsigned long long, int* status) {
  *function = entry_point(symbol, version);
  if (status != nullptr) *status = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* status) {
  *function = entry_point(symbol, static_cast<unsigned>(machine().driver_version()));
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
