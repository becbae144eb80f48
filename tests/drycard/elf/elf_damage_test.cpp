// SPDX-License-Identifier: Apache-2.0
// Reads shared objects that are damaged or were made to do harm.
#include "ullage/drycard/elf/elf_file.h"

#include "drycard/drycard_fakes.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>

namespace ullage::drycard {
namespace {

constexpr std::size_t kMostSymbolBytes = 24;  // bytes of one symbol in a file

// Reads everything that the file has and checks that the results stay in bounds. Returns the error, or "read" if there
// is none.
std::string read_all(std::string_view content) {
  const auto elf = ElfFile::parse(bytes_of(content), "x.so");
  if (!elf) {
    EXPECT_EQ(elf.error().kind, Error::Kind::BadFile);
    EXPECT_EQ(elf.error().where.rfind("x.so:", 0), 0u) << elf.error().text();
    return elf.error().text();
  }
  std::size_t letters = elf->soname().size();
  for (const auto& name : elf->needed()) letters += name.size();
  for (const auto& symbols : {elf->defined_symbols(), elf->undefined_symbols()}) {
    if (!symbols) return symbols.error().text();
    EXPECT_LE(symbols->size(), content.size() / kMostSymbolBytes);
    for (const auto& one : symbols.value()) letters += one.name.size() + one.version.size() + one.version_file.size();
  }
  EXPECT_LE(letters, 64 * content.size() + (1u << 20));
  return "read";
}

std::string stub_of_two_versions() {
  return write_stub_library({"libx.so.1", {"liby.so"}, {"V1", "V2"}, {{"f", 0}, {"f", 1}, {"g", 1}}, "callee"});
}

std::vector<std::string> files() {
  return {stub_of_two_versions(), content_of(fake("torch/libtorch_cuda.so")), content_of(fake("cuda/libcudart.so.13")),
          content_of(fake("cuda/libnccl.so.2")), content_of(fake("torch/libtorch_cpu.so"))};
}

// Returns `content` with `value` in the entry of the dynamic segment that has this tag.
std::string with_entry(std::string content, std::int64_t tag, std::uint64_t value) {
  Elf64_Ehdr header;
  std::memcpy(&header, content.data(), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, content.data() + header.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type != PT_DYNAMIC) continue;
    for (std::uint64_t at = part.p_offset; at < part.p_offset + part.p_filesz; at += sizeof(Elf64_Dyn)) {
      if (std::memcmp(&content[at], &tag, sizeof tag) != 0) continue;
      std::memcpy(&content[at + 8], &value, sizeof value);
      return content;
    }
  }
  ADD_FAILURE() << "no entry " << tag;
  return content;
}
// Returns the file offset of a table. In a stub library, addresses and file offsets are equal.
std::uint64_t entry_of(const std::string& content, std::int64_t tag) {
  for (std::uint64_t value = 0;; value += 1) {
    if (with_entry(content, tag, value) == content) return value;
    if (value == content.size()) break;
  }
  return 0;
}
Elf64_Phdr segment_of(const std::string& content, std::size_t number) {
  Elf64_Phdr part;
  std::memcpy(&part, content.data() + sizeof(Elf64_Ehdr) + number * sizeof part, sizeof part);
  return part;
}
template <class T>
std::string with_value(std::string content, std::uint64_t at, T value) {
  std::memcpy(&content[at], &value, sizeof value);
  return content;
}

bool says_elf(const std::string& content, std::string_view what) {
  const std::string said = read_all(content);
  if (said.find(what) != said.npos) return true;
  ADD_FAILURE() << said;
  return false;
}

// The bytes after a cut stay in memory, as in a mapping. So a read beyond the end does not crash; only the checks can
// find it.
TEST(ElfDamage, FilesCutShortAreReadOrRefused) {
  for (const auto& file : files()) {
    ASSERT_EQ(read_all(file), "read");
    const std::string_view whole = file;
    for (std::size_t size = 0; size < file.size(); size += size < 2048 ? 1 : 37) (void)read_all(whole.substr(0, size));
  }
  const std::string stub = stub_of_two_versions();
  const std::size_t loaded = segment_of(stub, 2).p_offset + segment_of(stub, 2).p_filesz;
  for (std::size_t size = 0; size < loaded; ++size) {
    ASSERT_NE(read_all(std::string_view(stub).substr(0, size)), "read") << size;
  }
  EXPECT_EQ(read_all(std::string_view(stub).substr(0, loaded)), "read");
}

TEST(ElfDamage, FlippedBitsAreReadOrRefused) {
  for (const auto& file : files()) {
    std::size_t refused = 0;
    for (std::size_t bit = 0; bit < file.size() * 8; bit += bit < 8 * 4096 ? 1 : 7) {
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      refused += read_all(flipped) != "read" ? 1 : 0;
    }
    EXPECT_GT(refused, 100u);
  }
}

TEST(ElfDamage, BytesOfOnesAreReadOrRefused) {
  for (const auto& file : files()) {
    for (std::size_t at = 0; at + 8 <= file.size(); at += at < 4096 ? 4 : 20) {
      for (const std::size_t count : {1, 2, 4, 8}) (void)read_all(std::string(file).replace(at, count, count, '\xff'));
    }
  }
}

TEST(ElfDamage, SegmentBehindTheEnd) {
  const std::string file = stub_of_two_versions();
  EXPECT_TRUE(says_elf(with_value(file, sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz), ~std::uint64_t{0}),
                       "x.so:64: a segment of 18446744073709551615 bytes at 0, the file has "));
  EXPECT_TRUE(says_elf(with_value(file, offsetof(Elf64_Ehdr, e_phoff), ~std::uint64_t{0}),
                       "x.so:32: 5 program headers at 18446744073709551615, the file has "));
}

TEST(ElfDamage, TablesOutsideTheSegments) {
  const std::string file = stub_of_two_versions();
  EXPECT_TRUE(says_elf(with_entry(file, DT_STRTAB, 0x100000), "the string table is said to have "));
  EXPECT_TRUE(says_elf(with_entry(file, DT_STRSZ, ~std::uint64_t{0}), "18446744073709551615 bytes at address"));
  EXPECT_TRUE(says_elf(with_entry(file, DT_SYMTAB, 0x100000), "the symbol table is said to have 120 bytes"));
  EXPECT_TRUE(says_elf(with_entry(file, DT_SYMENT, 16), "symbols of 16 bytes each, a symbol has 24"));
  EXPECT_TRUE(says_elf(with_entry(file, DT_GNU_HASH, 0x100000), "the hash table is said to have 16 bytes"));
  EXPECT_TRUE(says_elf(with_entry(file, DT_VERSYM, 0x100000), "the table of versions is said to have 10 bytes"));
  EXPECT_TRUE(says_elf(with_entry(file, DT_SONAME, 5000), "a name at 5000 of the string table, which has "));
}

TEST(ElfDamage, NamesWithoutAnEnd) {
  const std::string file = stub_of_two_versions();
  const std::uint64_t size = entry_of(file, DT_STRSZ);
  EXPECT_TRUE(says_elf(with_entry(file, DT_STRSZ, size - 1), "a name without an end"));
}

// Every tail of one long text is a name: a file of some kilobytes would give megabytes of names.
TEST(ElfDamage, LongNamesThatOverlap) {
  StubLibrary library{std::string(100000, 'n'), {}, {}, {}, "callee"};
  for (int i = 0; i < 40; ++i) library.symbols.push_back({"f" + std::to_string(i), 0});
  std::string file = write_stub_library(library);
  const std::uint64_t symbols = entry_of(file, DT_SYMTAB), soname = entry_of(file, DT_SONAME);
  for (std::uint32_t i = 2; i < 42; ++i)
    file = with_value(file, symbols + i * 24, static_cast<std::uint32_t>(soname + i));
  EXPECT_TRUE(says_elf(file, "names of more than "));
}

TEST(ElfDamage, HashTableThatLies) {
  const std::string file = stub_of_two_versions();
  const std::uint64_t hash = entry_of(file, DT_GNU_HASH);
  EXPECT_TRUE(says_elf(with_value(file, hash, ~0u), "the hash table is said to have 17179869"));
  EXPECT_TRUE(
      says_elf(with_value(file, hash + 24, 1u), "a bucket begins with symbol 1, the first one in the table is 2"));
  EXPECT_TRUE(says_elf(with_value(file, hash + 24, 1u << 30), "a chain of the hash table passes its segment's end"));
}

TEST(ElfDamage, VersionsThatLie) {
  const std::string file = stub_of_two_versions();
  const std::uint64_t indices = entry_of(file, DT_VERSYM), versions = entry_of(file, DT_VERDEF);
  EXPECT_TRUE(says_elf(with_value(file, indices + 4, std::uint16_t{9}), "a symbol has version 9, the file has 4"));
  const std::uint64_t next = versions + offsetof(Elf64_Verdef, vd_next),
                      aux = versions + offsetof(Elf64_Verdef, vd_aux);
  EXPECT_TRUE(says_elf(with_value(file, next, 1u), "the next record of own versions is said to be 1 bytes on"));
  EXPECT_TRUE(says_elf(with_value(file, next, ~0u), "the next record of own versions is said to be 4294967295 bytes"));
  EXPECT_TRUE(says_elf(with_value(file, aux, ~0u), "the next record of own versions is said to be 4294967295 bytes"));
}

TEST(ElfDamage, NoDynamicSegment) {
  std::string file = stub_of_two_versions();
  EXPECT_TRUE(says_elf(with_value(file, sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr), std::uint32_t{PT_NOTE}),
                       "no dynamic segment among 5 program headers"));
}

}  // namespace
}  // namespace ullage::drycard
