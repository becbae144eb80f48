// SPDX-License-Identifier: Apache-2.0

// Stands before c10::isSharedStorageAlias, in every process of a run. DistributedDataParallel calls it in each backward
// pass, to see whether a gradient lies in its bucket. Torch's own function asks both storages for a pointer, and fails
// if the runtime has marked one as moved off the card. The runtime compares them without their bytes.

#include "ullage/preload/preload.h"

#include <atomic>

namespace ullage::preload {
namespace {

using Compare = bool (*)(const void* first, const void* second);
constexpr const char* kName = "_ZN3c1020isSharedStorageAliasERKNS_7StorageES2_";
std::atomic<Compare> runtimes{nullptr};
std::atomic<Compare> torchs{nullptr};

// Python maps libc10 for itself alone, so it is not among the libraries that come after this one.
Compare torchs_own() {
  Compare own = torchs.load(std::memory_order_relaxed);
  if (own != nullptr) return own;
  void* const library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) own = reinterpret_cast<Compare>(dlsym(library, kName));
  torchs.store(own, std::memory_order_relaxed);
  return own;
}

}  // namespace
}  // namespace ullage::preload

void ullage_compare_storages(bool (*compare)(const void* first, const void* second)) {
  ullage::preload::runtimes.store(compare, std::memory_order_release);
}

extern "C" __attribute__((visibility("default"))) bool ullage_is_shared_storage_alias(
    const void* first, const void* second) __asm__("_ZN3c1020isSharedStorageAliasERKNS_7StorageES2_");

bool ullage_is_shared_storage_alias(const void* first, const void* second) {
  using namespace ullage::preload;
  const Compare compare = runtimes.load(std::memory_order_acquire);
  if (compare != nullptr) return compare(first, second);
  const Compare own = torchs_own();
  return own != nullptr && own(first, second);
}
