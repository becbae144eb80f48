// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/fat_binaries.h"

#include "ullage/drycard/card/kernel_arguments.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
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
  std::span<const std::uint8_t> bytes;  // as they are in the file, compressed or not
  std::size_t size;                     // when they are not compressed
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
  struct Kernel {
    const void* function;
    Module* module;
    const char* name;
  };
  std::vector<Kernel> registered;
  std::unordered_map<const void*, Kernel> by_address;
  std::unordered_map<const void*, KernelFacts> facts;

  const Kernel* find(const void* function) {
    for (const Kernel& kernel : registered) by_address[kernel.function] = kernel;
    registered.clear();
    const auto found = by_address.find(function);
    return found == by_address.end() || found->second.module == nullptr ? nullptr : &found->second;
  }
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
      // nvcc writes the size before compression at this place of a longer header.
      constexpr std::size_t kPlainSize = 56;
      const bool is_packed = entry.compressed_size != 0 && entry.header_size >= kPlainSize + sizeof(std::uint64_t);
      const auto size = is_packed ? read_at<std::uint64_t>(entries + at + kPlainSize) : entry.size;
      const std::uint64_t stored = is_packed ? std::min<std::uint64_t>(entry.compressed_size, entry.size) : entry.size;
      module.codes.push_back({static_cast<int>(entry.capability),
                              entry.kind == kText,
                              {entries + at + entry.header_size, static_cast<std::size_t>(stored)},
                              static_cast<std::size_t>(size)});
    }
    at += entry.header_size + entry.size;
  }
}

// The code that a card of that capability runs; null if there is none.
const Code* best_code(const Module& module, int card) {
  const Code* best = nullptr;
  for (const Code& code : module.codes) {
    const bool runs = code.capability <= card && (code.text || code.capability / 10 == card / 10);
    if (runs && (best == nullptr || code.capability > best->capability)) best = &code;
  }
  return best;
}

}  // namespace

void** register_fat_binary(const void* wrapper) {
  auto* module = new Module;
  module->wrapper = static_cast<const Wrapper*>(wrapper);
  return reinterpret_cast<void**>(module);
}

void register_function(void** module, const void* function, const char* name) {
  const std::lock_guard hold(modules_lock());
  functions().registered.push_back({function, reinterpret_cast<Module*>(module), name});
}

std::optional<int> code_for(const void* function, int card) {
  const std::lock_guard hold(modules_lock());
  const Functions::Kernel* kernel = functions().find(function);
  if (kernel == nullptr) return card;
  Module& module = *kernel->module;
  if (!module.is_read) read_codes(module);
  if (module.codes.empty()) return card;
  const Code* best = best_code(module, card);
  return best == nullptr ? std::nullopt : std::optional(best->capability);
}

KernelFacts& kernel_facts(const void* function, int card) {
  const std::lock_guard hold(modules_lock());
  const auto [at, is_new] = functions().facts.try_emplace(function);
  KernelFacts& facts = at->second;
  const Functions::Kernel* kernel = is_new ? functions().find(function) : nullptr;
  if (kernel == nullptr) return facts;
  Module& module = *kernel->module;
  if (!module.is_read) read_codes(module);
  if (kernel->name != nullptr) facts.name = kernel->name;
  const Code* code = best_code(module, card);
  if (code == nullptr || code->text) return facts;
  static auto* const last = new std::pair<const Code*, std::vector<std::uint8_t>>;  // for the next kernel
  if (last->first != code) *last = {code, decompressed(code->bytes, code->size)};
  const KernelCode its = kernel_code(last->second, facts.name);
  facts.is_known = !its.arguments.empty();
  facts.words = ArgumentWords(its.arguments);
  facts.code = its.size;
  return facts;
}

}  // namespace ullage::drycard
