// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/elf/stub_library.h"

#include "ullage/base/check.h"

#include "drycard/drycard_fakes.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ullage::drycard {
namespace {

using Function = int (*)();
using Texts = std::vector<std::string>;

const std::string kDrycard = fake("libfake_drycard.so");

class Loaded final {
 public:
  explicit Loaded(const std::string& path) : library_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const char* why = library_ == nullptr ? ::dlerror() : nullptr;
    EXPECT_NE(library_, nullptr) << (why == nullptr ? "" : why);
  }
  ~Loaded() {
    if (library_ != nullptr) ::dlclose(library_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  Function find(const std::string& name) const { return reinterpret_cast<Function>(::dlsym(library_, name.c_str())); }
  Function find(const std::string& name, const char* version) const {
    return reinterpret_cast<Function>(::dlvsym(library_, name.c_str(), version));
  }
  // The name with which the fake dry card was called last.
  std::string last_name() const {
    return reinterpret_cast<const char* (*)()>(::dlsym(library_, "fake_drycard_last_name"))();
  }

 private:
  void* library_;
};

std::string written(const OwnFolder& folder, const StubLibrary& library) {
  write_content(folder / library.soname, write_stub_library(library));
  return folder / library.soname;
}

TEST(StubLibrary, FunctionsCallWithTheirNames) {
  const OwnFolder folder;
  StubLibrary library{"libstub_names.so.1", {kDrycard}, {}, {}, "ullage_drycard_unknown"};
  for (int i = 0; i < 1000; ++i) library.symbols.push_back({"function_" + std::to_string(i), 0});
  const Loaded loaded(written(folder, library));
  for (const auto& function : library.symbols) {
    const Function found = loaded.find(function.name);
    ASSERT_NE(found, nullptr) << function.name;
    EXPECT_EQ(found(), 7);
    EXPECT_EQ(loaded.last_name(), function.name);
  }
  EXPECT_EQ(loaded.find("function_1000"), nullptr);
}

TEST(StubLibrary, VariablesAreZerosOfTheirOwn) {
  const OwnFolder folder;
  const Loaded loaded(written(folder, {"libstub_variables.so.1",
                                       {kDrycard},
                                       {"V1"},
                                       {{"a", 0, true}, {"f", 0}, {"b", 0, true}, {"g", 0}},
                                       "ullage_drycard_unknown"}));
  auto* a = reinterpret_cast<char*>(loaded.find("a", "V1"));
  auto* b = reinterpret_cast<char*>(loaded.find("b"));
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  constexpr std::size_t kBytes = 4096;
  EXPECT_EQ(std::count(a, a + kBytes, 0), kBytes);
  std::fill_n(a, kBytes, 1);
  EXPECT_EQ(std::count(b, b + kBytes, 0), kBytes);
  EXPECT_EQ(loaded.find("f")(), 7);
  EXPECT_EQ(loaded.find("g")(), 7);
  EXPECT_EQ(loaded.last_name(), "g");
}

TEST(StubLibrary, FindsWhatTheNeededLibraryHas) {
  const OwnFolder folder;
  const Loaded loaded(written(folder, {"libstub_needs.so.1", {kDrycard}, {}, {{"f", 0}}, "ullage_drycard_unknown"}));
  ASSERT_NE(loaded.find("cudaMalloc"), nullptr);
  EXPECT_EQ(loaded.find("cudaMalloc")(), 40);
}

TEST(StubLibrary, FunctionsHaveTheirVersions) {
  const OwnFolder folder;
  const Loaded loaded(written(folder, {"libstub_versions.so.1",
                                       {kDrycard},
                                       {"V1", "V2"},
                                       {{"f", 0}, {"f", 1}, {"g", 1}, {"h", 0}},
                                       "ullage_drycard_unknown"}));
  ASSERT_NE(loaded.find("f", "V1"), nullptr);
  ASSERT_NE(loaded.find("f", "V2"), nullptr);
  EXPECT_NE(loaded.find("f", "V1"), loaded.find("f", "V2"));
  EXPECT_EQ(loaded.find("f"), loaded.find("f", "V2"));  // f@V2 is the default, as the last version
  EXPECT_NE(loaded.find("g", "V2"), nullptr);
  EXPECT_EQ(loaded.find("g", "V1"), nullptr);
  EXPECT_NE(loaded.find("h"), nullptr);
  EXPECT_NE(loaded.find("h", "V1"), nullptr);
  EXPECT_EQ(loaded.find("h", "V3"), nullptr);
  EXPECT_EQ(loaded.find("f", "V1")(), 7);
  EXPECT_EQ(loaded.last_name(), "f");
}

TEST(StubLibrary, LoadsWithoutFunctions) {
  const OwnFolder folder;
  const Loaded loaded(written(folder, {"libstub_empty.so.1", {kDrycard}, {"V1"}, {}, "ullage_drycard_unknown"}));
  EXPECT_EQ(loaded.find("f"), nullptr);
}

TEST(StubLibrary, IsReadBack) {
  const std::string content = write_stub_library(
      {"libx.so.1", {"/a b/y.so", "libz.so"}, {"V1", "V2"}, {{"f", 0}, {"f", 1}, {"g", 0}}, "callee"});
  const auto elf = ElfFile::parse(bytes_of(content), "x");
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  EXPECT_EQ(elf->machine(), kX86_64);
  EXPECT_EQ(elf->soname(), "libx.so.1");
  EXPECT_EQ(Texts(elf->needed().begin(), elf->needed().end()), (Texts{"/a b/y.so", "libz.so"}));
  EXPECT_EQ(texts_of(elf->undefined_symbols()), Texts{"callee"});
  EXPECT_EQ(texts_of(elf->defined_symbols()), (Texts{"f@V2", "g@V1", "hidden f@V1"}));
}

// A program that needs a symbol with a version runs with a stub library in place of the real one.
TEST(StubLibrary, StandsInForALinkedLibrary) {
  const OwnFolder folder;
  const std::string cudart = written(folder, {"libcudart.so.13",
                                              {kDrycard},
                                              {"libcudart.so.13"},
                                              {{"cudaMalloc", 0}, {"cudaFree", 0}},
                                              "ullage_drycard_unknown"});
  const std::string nccl =
      written(folder, {"libnccl.so.2", {kDrycard}, {}, {{"ncclCommInitRank", 0}}, "ullage_drycard_unknown"});
  const std::string cuda = written(folder, {"libcuda.so.1", {kDrycard}, {}, {{"cuInit", 0}}, "ullage_drycard_unknown"});
  const std::string run = "LD_LIBRARY_PATH=" + fake("torch") + " LD_BIND_NOW=1 ";
  const std::string program = fake("program/torch_program");
  EXPECT_EQ(output_of(run + "LD_PRELOAD=" + cudart + ":" + nccl + ":" + cuda + " " + program),
            "7 cudaMalloc\n7 cudaFree\n7 ncclCommInitRank\n7 cuInit\nweak 0\ndriver open\n");
  EXPECT_EQ(output_of(run + program).find("7 cudaMalloc"), std::string::npos);  // whichever libraries the machine has
}

// Proves that the tests above would notice a wrong version.
TEST(StubLibrary, WithoutTheVersionNothingIsFound) {
  const OwnFolder folder;
  const std::string cudart = written(
      folder,
      {"libcudart.so.13", {kDrycard}, {"other"}, {{"cudaMalloc", 0}, {"cudaFree", 0}}, "ullage_drycard_unknown"});
  EXPECT_NE(output_of("LD_LIBRARY_PATH=" + fake("torch") + ":" + fake("cuda") + " LD_PRELOAD=" + cudart + " " +
                      fake("program/torch_program"))
                .find("undefined symbol: cuda"),
            std::string::npos);
}

TEST(StubLibrary, ContractIsChecked) {
  EXPECT_THROW(write_stub_library({"", {}, {}, {}, "c"}), ContractError);
  EXPECT_THROW(write_stub_library({"l", {}, {}, {}, ""}), ContractError);
  EXPECT_THROW(write_stub_library({"l", {}, {}, {{"f", 1}}, "c"}), ContractError);
  EXPECT_THROW(write_stub_library({"l", {}, {"V"}, {{"f", 0}, {"f", 0}}, "c"}), ContractError);
  EXPECT_THROW(write_stub_library({"l", {}, {}, {{"c", 0}}, "c"}), ContractError);
}

}  // namespace
}  // namespace ullage::drycard
