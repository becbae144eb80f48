// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/mapped_files.h"

#include <c10/core/Allocator.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ullage::runtime {
namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

// Above this many remembered storages all are forgotten, so that a program that makes new ones for ever costs no more.
constexpr std::size_t kMostRemembered = 4096;

// Did torch neither make these bytes nor know who writes to them? Such a storage has nothing to free, or the deleter
// that torch::from_blob() and torch.from_numpy() give it.
bool is_borrowed(const c10::DataPtr& bytes) {
  static const c10::DeleterFnPtr deleter = [] {
    char byte = 0;
    return c10::InefficientStdFunctionContext::makeDataPtr(
               &byte, [](void*) {}, c10::kCPU)
        .get_deleter();
  }();
  return bytes.get_context() == nullptr || bytes.get_deleter() == deleter;
}

bool is_in_private_file(std::uint64_t begin, std::uint64_t size) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t from = 0, to = 0, inode = 0;
    char shared = 0;
    const char* const form = "%" SCNx64 "-%" SCNx64 " %*3c%c %*s %*s %" SCNu64;
    if (std::sscanf(line.c_str(), form, &from, &to, &shared, &inode) != 4) continue;
    if (begin < from || begin >= to) continue;
    return shared == 'p' && inode != 0 && size <= to - begin;
  }
  return false;
}

}  // namespace

bool lies_in_private_file(const c10::intrusive_ptr<c10::StorageImpl>& storage) {
  struct Known {
    WeakStorage storage;  // as long as this exists, no other storage can have its address
    bool in_file = false;
  };
  static std::mutex lock;
  static auto& known = *new std::unordered_map<const c10::StorageImpl*, Known>();
  const c10::DataPtr& bytes = storage->_mutable_data_ptr_no_checks();
  if (!storage->device().is_cpu() || is_borrowed(bytes)) return false;
  const std::lock_guard hold(lock);
  if (const auto found = known.find(storage.get()); found != known.end()) return found->second.in_file;
  if (known.size() >= kMostRemembered) known.clear();
  const bool in_file = is_in_private_file(reinterpret_cast<std::uint64_t>(bytes.get()), storage->nbytes());
  known.emplace(storage.get(), Known{WeakStorage(storage), in_file});
  return in_file;
}

}  // namespace ullage::runtime
