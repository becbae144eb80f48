// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a shared object. Then reads a small valid one with some bytes changed, so that its tables are
// reached. The result must be a value or an Error, in bounded time and memory, and views must lie within the file.

#include "ullage/drycard/elf/elf_file.h"
#include "ullage/drycard/elf/stub_library.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t kSymbolBytes = 24;  // bytes of one symbol in a file
constexpr std::size_t kChange = 3;        // bytes of input per change: two for the place, one for the value

void read(std::span<const std::byte> file) {
  const auto elf = ullage::drycard::ElfFile::parse(file, "fuzz");
  if (!elf.ok()) return;
  const auto* const begin = reinterpret_cast<const char*>(file.data());
  const auto check = [&](std::string_view text) {
    if (!text.empty() && (text.data() < begin || text.data() + text.size() >= begin + file.size())) std::abort();
  };
  check(elf->soname());
  for (const auto& name : elf->needed()) check(name);
  for (const auto& symbols : {elf->defined_symbols(), elf->undefined_symbols()}) {
    if (!symbols.ok()) continue;
    if (symbols->size() > file.size() / kSymbolBytes) std::abort();
    for (const auto& one : symbols.value()) check(one.name), check(one.version), check(one.version_file);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(std::as_bytes(std::span(data, size)));
  static const std::string kRight = ullage::drycard::write_stub_library(
      {"libfuzz.so.1", {"libneeded.so.1"}, {"V1", "V2"}, {{"f", 0}, {"f", 1}, {"g", 0}, {"h", 1}}, "callee"});
  std::string changed = kRight;
  for (std::size_t i = 0; i + kChange <= size; i += kChange) {
    changed[(data[i] * 256u + data[i + 1]) % changed.size()] = static_cast<char>(data[i + 2]);
  }
  read(std::as_bytes(std::span(changed)));
  return 0;
}
