// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a shared object (ELF, 64 bits, little endian) says of itself to the loader: its name, the libraries it needs,
// the symbols that it has and those that it wants, with their versions.
//
//   header | program headers -> PT_DYNAMIC -> DT_SYMTAB, DT_STRTAB, DT_GNU_HASH, DT_VERSYM, DT_VERNEED, ...
//                               PT_LOAD     : which addresses these are in the file
//
// The loader's way is taken; section headers are never looked at, since a stripped file has none. The file is foreign:
// all places are checked, and the work follows the file's size. System V ABI, chapters 4 and 5; LSB 5.0, 10.7
// (versions).

#include "ullage/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::drycard {

constexpr std::uint16_t kX86_64 = 62;    // EM_X86_64
constexpr std::uint16_t kAarch64 = 183;  // EM_AARCH64

struct ElfSymbol {
  enum class Kind { Function, Object, ThreadLocal, Unknown };  // linkers often leave open what a wanted symbol is
  std::string_view name;
  std::string_view version;       // empty: none
  std::string_view version_file;  // the library that has the version, of a wanted symbol; else empty
  Kind kind = Kind::Unknown;
  bool weak = false;
  bool hidden = false;  // found by its version only; of a symbol that the file has
};

class ElfFile final {
 public:
  // BadFile with `name:offset`: no ELF file of this kind, or a damaged one. The bytes must outlive the ElfFile, and the
  // ElfFile the views that it gives.
  static Result<ElfFile> parse(std::span<const std::byte> file, const std::string& name);
  // Do these bytes begin as an ELF file does? A name in *.so may be a text for the linker.
  static bool is_elf(std::span<const std::byte> file);

  std::uint16_t machine() const { return machine_; }
  std::string_view soname() const { return soname_; }  // empty: none
  std::span<const std::string_view> needed() const { return needed_; }

  // Local symbols are in neither. What the loader cannot see is no symbol of the file.
  Result<std::vector<ElfSymbol>> defined_symbols() const;
  Result<std::vector<ElfSymbol>> undefined_symbols() const;

 private:
  friend class ElfParser;
  // A version index of the file, and what it means.
  struct Version {
    std::string_view name;
    std::string_view file;
    bool base = false;  // the file's own name: means no version
  };
  struct Strings {
    std::string_view bytes;
    std::uint64_t offset = 0;  // in the file
  };
  Result<std::vector<ElfSymbol>> symbols(bool defined) const;

  std::span<const std::byte> file_;
  std::string name_;
  std::uint16_t machine_ = 0;
  std::string_view soname_;
  std::vector<std::string_view> needed_;
  Strings strings_;
  std::uint64_t symbols_ = 0;  // offset in the file
  std::uint64_t count_ = 0;    // of symbols; all lie within the file
  std::uint64_t version_indices_ = 0;
  bool has_versions_ = false;
  std::vector<Version> versions_;  // by index
};

}  // namespace ullage::drycard
