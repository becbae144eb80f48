// SPDX-License-Identifier: Apache-2.0
// A kernel launch succeeds if the program has code for the card, and fails as on a real card if it has none.
#include "drycard/card/card_library.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace ullage::drycard {
namespace {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// Makes the container that nvcc embeds in a program, without the code itself: machine code (kind 2) or PTX text (kind
// 1) for these capabilities.
class FatBinary {
 public:
  FatBinary(std::uint16_t kind, const std::vector<std::uint32_t>& capabilities) {
    const std::uint64_t size = capabilities.size() * 32;
    add<std::uint32_t>(0xba55ed50), add<std::uint16_t>(1), add<std::uint16_t>(16), add(size);
    for (const std::uint32_t capability : capabilities) {
      add(kind), add<std::uint16_t>(0), add<std::uint32_t>(32), add<std::uint64_t>(0), add<std::uint64_t>(0);
      add<std::uint32_t>(0), add(capability);
    }
    wrapper_ = {0x466243b1, 1, bytes_.data()};
  }
  const void* wrapper() const { return &wrapper_; }

 private:
  template <class T>
  void add(T value) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
  }

  struct {
    std::uint32_t magic, version;
    const std::uint8_t* header;
  } wrapper_;
  std::vector<std::uint8_t> bytes_;
};

constexpr int kNoKernelImage = 209;

int launch(const CardLibrary& card, const FatBinary& binary) {
  static const char kernel = 0;
  using Register = void** (*)(const void*);
  void** module = reinterpret_cast<Register>(card.find("__cudaRegisterFatBinary"))(binary.wrapper());
  card("__cudaRegisterFunction", module, static_cast<const void*>(&kernel), static_cast<char*>(nullptr),
       static_cast<const char*>("kernel"));
  const int error = card("cudaLaunchKernel", static_cast<const void*>(&kernel), Grid{}, Grid{},
                         static_cast<void**>(nullptr), std::size_t{0}, static_cast<void*>(nullptr));
  EXPECT_EQ(card("cudaGetLastError"), error);
  return error;
}

TEST(Kernels, RunOnCardsOfTheirGeneration) {
  const CardLibrary card({{"ULLAGE_DRYCARD_CARD", "rtx4090"}});
  EXPECT_EQ(launch(card, FatBinary(2, {75, 80, 86, 90})), 0);
}

TEST(Kernels, OfNewerCardsAloneDoNotRun) {
  const CardLibrary card({{"ULLAGE_DRYCARD_CARD", "v100-16gb"}});
  EXPECT_EQ(launch(card, FatBinary(2, {75, 80, 90})), kNoKernelImage);
  EXPECT_STREQ(reinterpret_cast<const char* (*)(int)>(card.find("cudaGetErrorString"))(kNoKernelImage),
               "no kernel image is available for execution on the device");
}

TEST(Kernels, OfAnOlderGenerationDoNotRunUnlessTheyAreText) {
  const CardLibrary card({{"ULLAGE_DRYCARD_CARD", "h100"}});
  EXPECT_EQ(launch(card, FatBinary(2, {75, 86})), kNoKernelImage);
}

TEST(Kernels, OfTextRunOnNewerCards) {
  const CardLibrary card({{"ULLAGE_DRYCARD_CARD", "h100"}});
  EXPECT_EQ(launch(card, FatBinary(1, {75})), 0);
}

}  // namespace
}  // namespace ullage::drycard
