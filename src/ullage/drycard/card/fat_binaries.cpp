// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/fat_binaries.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ullage::drycard {
namespace {

// The layout that nvcc writes, as seen in torch's libraries: a wrapper points to a header, and the entries follow it
// one after the other.
struct Wrapper {
  std::uint32_t magic, version;
  const std::uint8_t* header;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;  // of all entries
};
struct Entry {
  std::uint16_t kind, attributes;
  std::uint32_t header_size;
  std::uint64_t size;  // of what follows the entry's header
  std::uint32_t compressed_size, options;
  std::uint16_t minor, major;
  std::uint32_t capability;  // 86
};
constexpr std::uint32_t kWrapperMagic = 0x466243b1, kHeaderMagic = 0xba55ed50;
constexpr std::uint16_t kText = 1, kBinary = 2;  // PTX runs on all newer cards, machine code on those of its generation

struct Code {
  int capability;
  bool text;
};

struct Module {
  const Wrapper* wrapper = nullptr;
  bool is_read = false;
  std::vector<Code> codes;
};

std::mutex& modules_lock() {
  static std::mutex* one = new std::mutex;
  return *one;
}

// Kernels in the order of their registration, tens of thousands. The first lookup moves them into the map.
struct Functions {
  std::vector<std::pair<const void*, Module*>> registered;
  std::unordered_map<const void*, Module*> by_address;
};
Functions& functions() {
  static Functions* all = new Functions;
  return *all;
}

template <class T>
T read_at(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void read_codes(Module& module) {
  module.is_read = true;
  if (module.wrapper == nullptr || module.wrapper->magic != kWrapperMagic || module.wrapper->header == nullptr) return;
  const auto header = read_at<Header>(module.wrapper->header);
  if (header.magic != kHeaderMagic || header.header_size < sizeof(Header)) return;
  const std::uint8_t* entries = module.wrapper->header + header.header_size;
  for (std::uint64_t at = 0; at + sizeof(Entry) <= header.size;) {
    const auto entry = read_at<Entry>(entries + at);
    if (entry.header_size < sizeof(Entry) || entry.size > header.size - at) return;
    if (entry.kind == kText || entry.kind == kBinary) {
      module.codes.push_back({static_cast<int>(entry.capability), entry.kind == kText});
    }
    at += entry.header_size + entry.size;
  }
}

}  // namespace

void** register_fat_binary(const void* wrapper) {
  auto* module = new Module;
  module->wrapper = static_cast<const Wrapper*>(wrapper);
  return reinterpret_cast<void**>(module);
}

void register_function(void** module, const void* function) {
  const std::lock_guard hold(modules_lock());
  functions().registered.emplace_back(function, reinterpret_cast<Module*>(module));
}

std::optional<int> code_for(const void* function, int card) {
  const std::lock_guard hold(modules_lock());
  Functions& all = functions();
  for (const auto& [known, module] : all.registered) all.by_address[known] = module;
  all.registered.clear();
  const auto found = all.by_address.find(function);
  if (found == all.by_address.end() || found->second == nullptr) return card;
  Module& module = *found->second;
  if (!module.is_read) read_codes(module);
  if (module.codes.empty()) return card;
  std::optional<int> best;
  for (const Code& code : module.codes) {
    const bool runs = code.capability <= card && (code.text || code.capability / 10 == card / 10);
    if (runs && code.capability > best.value_or(0)) best = code.capability;
  }
  return best;
}

}  // namespace ullage::drycard
