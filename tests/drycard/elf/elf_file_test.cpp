// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/elf/elf_file.h"

#include "drycard/drycard_fakes.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>

namespace ullage::drycard {
namespace {

using Texts = std::vector<std::string>;

TEST(ElfFile, HasTheNamesAndNeedsOfALibrary) {
  const std::string content = content_of(fake("torch/libtorch_cuda.so"));
  const auto elf = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  EXPECT_EQ(elf->machine(), kX86_64);
  EXPECT_EQ(elf->soname(), "libtorch_cuda.so");
  const Texts needed(elf->needed().begin(), elf->needed().end());
  EXPECT_TRUE(has_text(needed, "libcudart.so.13"));
  EXPECT_TRUE(has_text(needed, "libnccl.so.2"));
}

TEST(ElfFile, TellsWantedSymbolsWithTheirVersions) {
  const std::string content = content_of(fake("torch/libtorch_cuda.so"));
  const auto elf = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  const auto wanted = texts_of(elf->undefined_symbols());
  for (const char* one : {"cudaMalloc@libcudart.so.13(libcudart.so.13)", "cudaFree@libcudart.so.13(libcudart.so.13)",
                          "ncclCommInitRank", "cuInit", "weak cudaOfNoVersion"}) {
    EXPECT_TRUE(has_text(wanted, one)) << one;
  }
  EXPECT_FALSE(has_text(wanted, "fake_torch_malloc"));
  const auto had = texts_of(elf->defined_symbols());
  EXPECT_TRUE(has_text(had, "fake_torch_malloc"));
  EXPECT_TRUE(has_text(had, "cudnnOfTorch"));
  EXPECT_FALSE(has_text(had, "cuInit"));
}

TEST(ElfFile, TellsTheVersionsOfWhatItHas) {
  const std::string content = content_of(fake("cuda/libcudart.so.13"));
  const auto elf = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  const auto had = texts_of(elf->defined_symbols());
  EXPECT_TRUE(has_text(had, "cudaMalloc@libcudart.so.13"));
  EXPECT_TRUE(has_text(had, "cudaFree@libcudart.so.13"));
}

// This library has DT_HASH only, so the reader counts symbols by it.
TEST(ElfFile, ReadsTheOlderHashTable) {
  const std::string content = content_of(fake("cuda/libnccl.so.2"));
  const auto elf = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  const auto symbols = elf->defined_symbols();
  const auto kind = [&](std::string_view name) {
    const auto at = std::find_if(symbols->begin(), symbols->end(), [&](const auto& one) { return one.name == name; });
    return at == symbols->end() ? ElfSymbol::Kind::Unknown : at->kind;
  };
  EXPECT_EQ(kind("ncclVariable"), ElfSymbol::Kind::Object);
  EXPECT_EQ(kind("ncclCommInitRank"), ElfSymbol::Kind::Function);
}

// This library defines nothing. Its hash table is empty, so the reader counts symbols by the relocations.
TEST(ElfFile, TellsWhatALibraryWantsThatHasNothing) {
  const std::string content = content_of(fake("torch/libtorch_cpu.so"));
  const auto elf = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  EXPECT_EQ(texts_of(elf->defined_symbols()), Texts{});
  const auto wanted = texts_of(elf->undefined_symbols());
  EXPECT_TRUE(has_text(wanted, "cudnnOfTorch"));
  EXPECT_TRUE(has_text(wanted, "cudaFree@libcudart.so.13(libcudart.so.13)"));
}

TEST(ElfFile, NeedsNoSections) {
  std::string content = content_of(fake("torch/libtorch_cuda.so"));
  const auto before = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(before.ok());
  const auto wanted = texts_of(before->undefined_symbols());
  std::memset(&content[offsetof(Elf64_Ehdr, e_shoff)], 0, 8);
  std::memset(&content[offsetof(Elf64_Ehdr, e_shnum)], 0, 2);
  const auto after = ElfFile::parse(bytes_of(content), "x.so");
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(texts_of(after->undefined_symbols()), wanted);
}

TEST(ElfFile, ReadsThisProgram) {
  const std::string content = content_of("/proc/self/exe");
  const auto elf = ElfFile::parse(bytes_of(content), "self");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  EXPECT_EQ(elf->soname(), "");
  const auto wanted = texts_of(elf->undefined_symbols());
  EXPECT_TRUE(std::any_of(wanted.begin(), wanted.end(), [](const auto& text) {
    return text.rfind("mkdtemp@GLIBC_", 0) == 0 && text.find("(libc.so.6)") != text.npos;
  }));
}

TEST(ElfFile, SaysWhatIsNoSharedObject) {
  const auto said = [](const std::string& content) {
    const auto elf = ElfFile::parse(bytes_of(content), "x");
    return elf ? std::string("read") : elf.error().text();
  };
  EXPECT_EQ(said(""), "x:0: not an ELF file: it does not begin with 0x7f ELF");
  EXPECT_EQ(said("INPUT(-lc)"), "x:0: not an ELF file: it does not begin with 0x7f ELF");
  EXPECT_EQ(said("\x7f"
                 "ELF\x02"),
            "x:5: the file ends within its header: it has 5 bytes, a header has 64");
  std::string content = content_of(fake("torch/libtorch_cuda.so"));
  content[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(said(content),
            "x:4: an ELF file of class 1 and byte order 1; only 64 bits and little endian (2 and 1) "
            "can be read");
  content[EI_CLASS] = ELFCLASS64;
  content[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  EXPECT_EQ(said(content), "x:16: an ELF file of type 1, a shared object is 3");
}

}  // namespace
}  // namespace ullage::drycard
