// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/stand_ins.h"

#include "drycard/drycard_fakes.h"

#include <gtest/gtest.h>

#include <elf.h>

namespace ullage::drycard {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

const std::string kCard = fake("libfake_drycard.so");

const StandIn* find_stand_in(const StandIns& made, const std::string& soname) {
  for (const auto& one : made.libraries) {
    if (one.soname == soname) return &one;
  }
  return nullptr;
}

// Returns the symbols of the stub library that was made for `soname`.
Texts functions_of(const StandIns& made, const std::string& soname) {
  const StandIn* one = find_stand_in(made, soname);
  if (one == nullptr) return {"none"};
  const std::string content = content_of(one->path);
  const auto elf = ElfFile::parse(bytes_of(content), soname);
  return elf ? texts_of(elf->defined_symbols()) : Texts{elf.error().text()};
}

std::string refusal_of(const StandInRequest& request) {
  const auto made = make_stand_ins(request);
  return made ? "made" : made.error().text();
}

TEST(StandIns, AreMadeOfWhatTorchWants) {
  const OwnFolder folder;
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(made->cuda_major, 13);
  EXPECT_EQ(made->preload,
            (Texts{kCard, folder / "out/libcuda.so.1", folder / "out/libcuda.so", folder / "out/libcudart.so.13",
                   folder / "out/libnccl.so.2", folder / "out/libnvidia-ml.so.1"}));
  EXPECT_EQ(functions_of(*made, "libcudart.so.13"), Texts{"cudaFree@libcudart.so.13"});
  EXPECT_EQ(functions_of(*made, "libnccl.so.2"), Texts{"ncclCommInitRank"});
  EXPECT_EQ(functions_of(*made, "libcuda.so.1"), Texts{"cuInit"});
  EXPECT_EQ(functions_of(*made, "libnvidia-ml.so.1"), Texts{});
  const StandIn* cudart = find_stand_in(*made, "libcudart.so.13");
  EXPECT_EQ(cudart->versions, Texts{"libcudart.so.13"});
  EXPECT_EQ(cudart->stubs, 1u);
  EXPECT_EQ(cudart->implemented, 1u);  // cudaMalloc
  EXPECT_EQ(made->notes, Texts{});
}

TEST(StandIns, LetAProgramRun) {
  const OwnFolder folder;
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  std::string preload;
  for (const auto& path : made->preload) preload += (preload.empty() ? "" : ":") + path;
  EXPECT_EQ(output_of("LD_LIBRARY_PATH=" + fake("torch") + " LD_BIND_NOW=1 LD_PRELOAD=" + preload + " " +
                      fake("program/torch_program")),
            "40 \n7 cudaFree\n7 ncclCommInitRank\n7 cuInit\nweak 0\ndriver open\n");
}

TEST(StandIns, LookIntoOtherPackages) {
  const OwnFolder folder;
  fs::create_directories(folder / "package/deep");
  fs::copy_file(fake("other/libtorch_variable.so"), folder / "package/deep/ext.so");
  write_content(folder / "package/damaged.so",
                "\x7f"
                "ELF");
  write_content(folder / "package/no_library.source", "x");
  write_content(folder / "package/text.so", "INPUT(-lc)");
  // A torch in a folder of packages is the one that is opened anyway.
  fs::create_directories(folder / "package/torch/lib");
  fs::copy(fake("torch"), folder / "package/torch/lib");
  write_content(folder / "package/torch/lib_of_a_test.so",
                write_stub_library({"unused.so", {"libcufft.so.11"}, {}, {}, "cufftPlan1d"}));
  // user.so calls a function of libcublas.so.13, a library that torch does not need.
  write_content(folder / "package/user.so",
                write_stub_library({"user.so", {"libcublas.so.13"}, {}, {}, "cublasCreate_v2"}));
  const auto made = make_stand_ins({folder / "package/torch/lib", folder / "out", kCard, {folder / "package"}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(functions_of(*made, "libcublas.so.13"), Texts{"cublasCreate_v2"});
  EXPECT_EQ(functions_of(*made, "libcufft.so.11"), Texts{"none"});
  EXPECT_EQ(made->notes, Texts{});
  EXPECT_EQ(functions_of(*made, "libnccl.so.2"), (Texts{"ncclCommInitRank", "ncclVariable"}));
}

// The dry card loads the real cuDNN, whose parts call functions of libcuda. A newer cuDNN calls some that torch does
// not.
TEST(StandIns, ServeThePartsOfTheRealCudnn) {
  const OwnFolder folder;
  fs::create_directories(folder / "package");
  const auto write_part = [&](const std::string& name, const std::string& needs, const std::string& calls) {
    write_content(folder / ("package/" + name), write_stub_library({name, {"libc.so.6", needs}, {}, {}, calls}));
  };
  write_part("libcudnn_engines.so.9", "libcuda.so.1", "cuTensorMapEncodeIm2col");
  write_part("libcudnn_cnn.so.9", "libcudnn_graph.so.9", "cudnnBackendFinalize");
  write_part("libcudnn.so.9", "libcublas.so.13", "cublasCreate_v2");  // has a stub itself
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {folder / "package"}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_TRUE(has_text(functions_of(*made, "libcuda.so.1"), "cuTensorMapEncodeIm2col"));
  EXPECT_EQ(find_stand_in(*made, "libcudnn_graph.so.9"), nullptr);
  EXPECT_EQ(find_stand_in(*made, "libcublas.so.13"), nullptr);
  EXPECT_EQ(made->notes, Texts{});
}

TEST(StandIns, LookIntoALibraryWithSoEarlierInItsName) {
  const OwnFolder folder;
  fs::create_directories(folder / "package");
  write_content(folder / "package/my.source.so",
                write_stub_library({"my.source.so", {"libcublas.so.13"}, {}, {}, "cublasCreate_v2"}));
  write_content(folder / "package/my.source.so.1",
                write_stub_library({"my.source.so.1", {"libcufft.so.11"}, {}, {}, "cufftPlan1d"}));
  write_content(folder / "package/my.source", "x");
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {folder / "package"}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(functions_of(*made, "libcublas.so.13"), Texts{"cublasCreate_v2"});
  EXPECT_EQ(functions_of(*made, "libcufft.so.11"), Texts{"cufftPlan1d"});
  EXPECT_EQ(made->notes, Texts{});
}

TEST(StandIns, SayWhichNamedFilesAreLeftOut) {
  const OwnFolder folder;
  write_content(folder / "damaged.so",
                "\x7f"
                "ELF");
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {folder / "damaged.so"}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(made->notes, Texts{"not looked at: " + (folder / "damaged.so") +
                               ":4: the file ends within its header: it has 4 bytes, a header has 64"});
}

TEST(StandIns, HaveWhatTorchLooksUpByName) {
  const OwnFolder folder;
  fs::create_directories(folder / "lib");
  fs::copy_file(fake("torch/libtorch_cuda.so"), folder / "lib/libtorch_cuda.so");
  write_content(folder / "lib/libc10_cuda.so", write_stub_library({"libc10_cuda.so",
                                                                   {},
                                                                   {},
                                                                   {{"cuStreamWriteValue32", 0},
                                                                    {"nvmlInit_v2", 0},
                                                                    {"cublasCreate_v2", 0},
                                                                    {"cuda_is_no_function", 0},
                                                                    {"cuIt's not", 0}},
                                                                   "callee"}));
  const auto made = make_stand_ins({folder / "lib", folder / "out", kCard, {}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(functions_of(*made, "libcuda.so.1"), (Texts{"cuInit", "cuStreamWriteValue32"}));
  EXPECT_EQ(functions_of(*made, "libnvidia-ml.so.1"), Texts{"nvmlInit_v2"});
}

TEST(StandIns, SayWhichCudnnTorchNeeds) {
  const OwnFolder folder;
  fs::create_directories(folder / "lib");
  fs::copy_file(fake("torch/libtorch_cuda.so"), folder / "lib/libtorch_cuda.so");
  const auto major_of = [&] {
    const auto made = make_stand_ins({folder / "lib", folder / "out", kCard, {}});
    return made ? made->cudnn_major : -1;
  };
  EXPECT_EQ(major_of(), 0);
  write_content(folder / "lib/libtorch_more.so",
                write_stub_library({"libtorch_more.so", {"libcudnn.so.8"}, {}, {}, "cudnnCreate"}));
  EXPECT_EQ(major_of(), 8);
}

TEST(StandIns, ServeWhatIsForAnotherCuda) {
  const OwnFolder folder;
  const auto user = [&](const std::string& cudart) {
    write_content(folder / "user.so",
                  write_stub_library({"user.so", {cudart, "libcufft.so.11"}, {}, {}, "cufftPlan1d"}));
    return make_stand_ins({fake("torch"), folder / "out", kCard, {folder / "user.so"}});
  };
  const auto older = user("libcudart.so.12"), same = user("libcudart.so.13");
  ASSERT_TRUE(older.ok()) << older.error().text();
  ASSERT_EQ(older->other_majors.size(), 1u);
  EXPECT_EQ(older->other_majors[0].path, folder / "user.so");
  EXPECT_EQ(older->other_majors[0].cuda_major, 12);
  EXPECT_EQ(older->cuda_major, 13);
  EXPECT_NE(find_stand_in(*older, "libcudart.so.12"), nullptr);
  EXPECT_EQ(functions_of(*older, "libcufft.so.11"), Texts{"cufftPlan1d"});
  ASSERT_TRUE(same.ok()) << same.error().text();
  EXPECT_EQ(same->other_majors.size(), 0u);
  EXPECT_EQ(functions_of(*same, "libcufft.so.11"), Texts{"cufftPlan1d"});
}

// torch 1.13 calls libcublasLt and is linked to libcublas alone, which needs libcublasLt.
TEST(StandIns, HaveWhatARealLibraryBringsAlong) {
  const OwnFolder folder;
  write_content(folder / "user.so",
                write_stub_library({"user.so", {"libc.so.6", "libcublas.so.13"}, {}, {}, "cublasLtMatmul"}));
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {folder / "user.so"}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(functions_of(*made, "libcublas.so.13"), Texts{"cublasLtMatmul"});
  EXPECT_EQ(made->notes, Texts{});
}

TEST(StandIns, SayWhatNobodyHas) {
  const OwnFolder folder;
  write_content(folder / "user.so", write_stub_library({"user.so", {}, {}, {}, "cufftPlan1d"}));
  const auto made = make_stand_ins({fake("torch"), folder / "out", kCard, {folder / "user.so"}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(made->notes, Texts{(folder / "user.so") +
                               " imports cufftPlan1d, but no file that was searched is linked to a libcufft"});
}

// Wheels may put the real CUDA libraries into torch's own folder. No stubs are made for what those need.
TEST(StandIns, DoNotCountTheRealLibraries) {
  const OwnFolder folder;
  fs::create_directories(folder / "lib");
  fs::copy_file(fake("torch/libtorch_cuda.so"), folder / "lib/libtorch_cuda.so");
  fs::copy_file(fake("cuda/libcudart.so.13"), folder / "lib/libcudart.so.13");
  write_content(
      folder / "lib/libcudnn.so.9",
      write_stub_library({"libcudnn.so.9", {"libcublas.so.13"}, {}, {{"cudnnCreate", 0}}, "cublasCreate_v2"}));
  write_content(folder / "lib/libtext.so", "INPUT(-lc)");
  const auto made = make_stand_ins({folder / "lib", folder / "out", kCard, {}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(find_stand_in(*made, "libcublas.so.13"), nullptr);
  EXPECT_EQ(functions_of(*made, "libcudart.so.13"), Texts{"cudaFree@libcudart.so.13"});
  EXPECT_EQ(made->notes, Texts{"not looked at: " + (folder / "lib/libtext.so") +
                               ":0: not an ELF file: it does not begin with 0x7f ELF"});
}

TEST(StandIns, SayWhatIsNoCudaTorch) {
  const OwnFolder folder;
  EXPECT_EQ(refusal_of({folder / "none", folder / "out", kCard, {}}),
            (folder / "none") + ": cannot be looked into: No such file or directory");
  fs::create_directories(folder / "lib");
  EXPECT_EQ(refusal_of({folder / "lib", folder / "out", kCard, {}}),
            (folder / "lib") +
                ": no libtorch_cuda.so among 0 shared objects: this folder does not hold torch's libraries; a "
                "dry card runs a CUDA build of torch, installed with pip");
  fs::copy_file(fake("torch/libtorch_cpu.so"), folder / "lib/libtorch_cpu.so");
  EXPECT_NE(refusal_of({folder / "lib", folder / "out", kCard, {}}).find("this is a CPU build of torch"),
            std::string::npos);
  fs::copy_file(fake("torch/libtorch_cuda.so"), folder / "lib/libtorch_hip.so");
  EXPECT_NE(refusal_of({folder / "lib", folder / "out", kCard, {}}).find("this is a ROCm build of torch"),
            std::string::npos);
}

TEST(StandIns, SayThatAMachineIsAnotherOne) {
  const OwnFolder folder;
  fs::create_directories(folder / "lib");
  std::string content = content_of(fake("torch/libtorch_cuda.so"));
  content[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_AARCH64);
  write_content(folder / "lib/libtorch_cuda.so", content);
  EXPECT_EQ(refusal_of({folder / "lib", folder / "out", kCard, {}}),
            (folder / "lib/libtorch_cuda.so") +
                ": built for aarch64 (ELF number 183), a dry card is made for x86-64 (62) alone");
}

TEST(StandIns, SayThatALibraryIsNoDryCard) {
  const OwnFolder folder;
  EXPECT_NE(refusal_of({fake("torch"), folder / "out", fake("cuda/libcudart.so.13"), {}})
                .find("but not ullage_drycard_unknown, so it is not the dry card's library"),
            std::string::npos);
  EXPECT_EQ(refusal_of({fake("torch"), folder / "out", folder / "x.so", {}}), (folder / "x.so") + ": no such file");
}

TEST(StandIns, SayThatAFolderCannotBeUsed) {
  const OwnFolder folder;
  write_content(folder / "file", "x");
  EXPECT_EQ(refusal_of({fake("torch"), folder / "file", kCard, {}}),
            (folder / "file") + ": cannot be made: Not a directory");
  EXPECT_NE(
      refusal_of({fake("torch"), folder / "with space", kCard, {}}).find("LD_PRELOAD cannot name a path with ' '"),
      std::string::npos);
  EXPECT_NE(refusal_of({fake("torch"), folder / "out", kCard, {folder / "none"}}).find("no such file or folder"),
            std::string::npos);
}

}  // namespace
}  // namespace ullage::drycard
