// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/kernel_arguments.h"

#include "ullage/drycard/card/process.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace ullage::drycard {
namespace {

using Bytes = std::span<const std::uint8_t>;

template <class T>
bool read(Bytes from, std::size_t at, T& value) {
  if (at > from.size() || from.size() - at < sizeof value) return false;
  std::memcpy(&value, from.data() + at, sizeof value);
  return true;
}

Bytes part(Bytes of, std::size_t at, std::size_t size) {
  return at <= of.size() && size <= of.size() - at ? of.subspan(at, size) : Bytes();
}

// The section .nv.info.KERNEL is a list of attributes. Each has a byte for how its value is stored, a byte for its
// kind, and the value.
std::vector<std::size_t> sizes_of(Bytes attributes) {
  constexpr std::uint8_t kSized = 4;  // the 16 bits are the size of the value that follows
  // The value of these two kinds is an index, an ordinal, an offset, and a word with the size. The size is in the bits
  // from 18 on, or, where arguments may be larger, in the low 16 bits.
  constexpr std::uint8_t kArgument = 0x17;
  constexpr std::uint8_t kLargeArgument = 0x45;
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at + 4 <= attributes.size();) {
    const std::uint8_t form = attributes[at];
    const std::uint8_t kind = attributes[at + 1];
    std::uint16_t length = 0;
    read(attributes, at + 2, length);
    at += 4;
    if (form != kSized) continue;
    std::uint16_t ordinal = 0;
    std::uint32_t word = 0;
    const bool is_argument = kind == kArgument || kind == kLargeArgument;
    if (is_argument && read(attributes, at + 4, ordinal) && read(attributes, at + 8, word)) {
      sizes.resize(std::max<std::size_t>(sizes.size(), ordinal + std::size_t{1}));
      sizes[ordinal] = kind == kArgument ? word >> 18 : word & 0xffffu;
    }
    at += length;
  }
  return sizes;
}

// More than the largest struct that a kernel of torch takes: a list of tensors, 25 KiB.
constexpr std::size_t kDeadStack = std::size_t{64} << 10;

using Decompress = std::size_t (*)(void* into, std::size_t room, const void* from, std::size_t size);

Decompress find_decompress() {
  void* library = ::dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Decompress>(::dlsym(library, "ZSTD_decompress"));
}

}  // namespace

KernelCode kernel_code(Bytes machine_code, std::string_view kernel) {
  Elf64_Ehdr header;
  if (!read(machine_code, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto section = [&](std::size_t index, Elf64_Shdr& into) {
    return read(machine_code, header.e_shoff + index * sizeof into, into);
  };
  Elf64_Shdr names;
  if (header.e_shentsize != sizeof names || !section(header.e_shstrndx, names)) return {};
  const Bytes texts = part(machine_code, names.sh_offset, names.sh_size);
  KernelCode code;
  Elf64_Shdr one;
  for (std::size_t i = 0; i < header.e_shnum && section(i, one); ++i) {
    const Bytes rest = part(texts, one.sh_name, texts.size() - std::min<std::size_t>(one.sh_name, texts.size()));
    const std::string_view name(reinterpret_cast<const char*>(rest.data()),
                                ::strnlen(reinterpret_cast<const char*>(rest.data()), rest.size()));
    if (!name.ends_with(kernel) || name.size() == kernel.size()) continue;
    const std::string_view kind = name.substr(0, name.size() - kernel.size());
    if (kind == ".nv.info.") code.arguments = sizes_of(part(machine_code, one.sh_offset, one.sh_size));
    const bool is_constants = kind.starts_with(".nv.constant") && kind.ends_with('.');
    if (kind == ".text." || is_constants) code.size += one.sh_size;
  }
  return code;
}

Bytes machine_code_at(const void* image) {
  const auto* begin = static_cast<const std::uint8_t*>(image);
  Elf64_Ehdr header;
  if (image == nullptr || std::memcmp(image, ELFMAG, SELFMAG) != 0) return {};
  std::memcpy(&header, image, sizeof header);
  std::size_t end = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  end = std::max<std::size_t>(end, header.e_phoff + std::size_t{header.e_phnum} * header.e_phentsize);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, begin + header.e_shoff + i * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return {begin, end};
}

std::vector<std::uint8_t> decompressed(Bytes code, std::size_t size) {
  static const Decompress decompress = find_decompress();
  constexpr std::uint8_t kMagic[] = {0x28, 0xb5, 0x2f, 0xfd};
  if (code.size() < sizeof kMagic || std::memcmp(code.data(), kMagic, sizeof kMagic) != 0) {
    return {code.begin(), code.end()};
  }
  std::vector<std::uint8_t> all(size);
  if (decompress == nullptr || decompress(all.data(), all.size(), code.data(), code.size()) != size) all.clear();
  return all;
}

ArgumentWords::ArgumentWords(std::span<const std::size_t> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t at = 0; at + sizeof(Address) <= sizes[i]; at += sizeof(Address)) words_.push_back({i, at});
  }
}

std::vector<Address> ArgumentWords::addresses(void* const* arguments) {
  std::vector<Address> found;
  std::erase_if(words_, [&](const Word& word) {
    Address value = 0;
    std::memcpy(&value, static_cast<const char*>(arguments[word.argument]) + word.offset, sizeof value);
    constexpr Address kAlignment = 4;
    if (is_device(value) && value % kAlignment == 0) found.push_back(value);
    return value != 0 && !is_device(value);
  });
  return found;
}

void clear_dead_stack() {
  std::uint8_t dead[kDeadStack];
  std::memset(dead, 0, sizeof dead);
  asm volatile("" : : "r"(dead) : "memory");  // so that the compiler does not leave the memset out
}

}  // namespace ullage::drycard
