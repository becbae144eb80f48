// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads what the loader needs of a shared object (ELF, 64 bits, little endian). That is its name, the libraries that it
// needs, and the symbols that it defines or imports, with their versions.
//
//   header | program headers -> PT_DYNAMIC -> DT_SYMTAB, DT_STRTAB, DT_GNU_HASH, DT_VERSYM, DT_VERNEED, ...
//                               PT_LOAD     : where these addresses are in the file
//
// It goes the same way as the loader and ignores section headers, because a stripped file has none. The file is
// foreign: all offsets are checked, and the work is bounded by the file's size. Sources: System V ABI, chapters 4 and
// 5; LSB 5.0, section 10.7 (versions).

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
  enum class Kind { Function, Object, ThreadLocal, Unknown };  // linkers often leave the kind of a wanted symbol open
  std::string_view name;
  std::string_view version;       // empty: none
  std::string_view version_file;  // for a wanted symbol the library that has the version; else empty
  Kind kind = Kind::Unknown;
  bool weak = false;
  bool hidden = false;  // a defined symbol that is found only if its version is asked for
};

class ElfFile final {
 public:
  // Parses the file. BadFile, with `name:offset`, if it is no ELF file of this kind or damaged. The bytes must outlive
  // the ElfFile. The ElfFile must outlive the views that it returns.
  static Result<ElfFile> parse(std::span<const std::byte> file, const std::string& name);
  // Returns whether the bytes begin like an ELF file. A file called *.so may also be a text for the linker.
  static bool is_elf(std::span<const std::byte> file);

  std::uint16_t machine() const { return machine_; }
  std::string_view soname() const { return soname_; }  // empty: none
  std::span<const std::string_view> needed() const { return needed_; }

  // Symbols that the file defines or imports. Local symbols and those that the loader cannot see are left out. If the
  // file exports nothing, imported symbols that no relocation names may be left out too: they have no effect.
  Result<std::vector<ElfSymbol>> defined_symbols() const;
  Result<std::vector<ElfSymbol>> undefined_symbols() const;

 private:
  friend class ElfParser;
  // The meaning of a version index of the file.
  struct Version {
    std::string_view name;
    std::string_view file;
    bool base = false;  // the file's own name, which stands for no version
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
  std::uint64_t count_ = 0;    // number of symbols; all lie within the file
  std::uint64_t version_indices_ = 0;
  bool has_versions_ = false;
  std::vector<Version> versions_;  // by index
};

}  // namespace ullage::drycard
