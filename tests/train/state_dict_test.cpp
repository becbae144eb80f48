// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/state_dict.h"

#include "read/weights_bytes.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace ullage::train {
namespace {

struct Counter : torch::nn::Module {
  Counter() : seen(register_buffer("seen", torch::zeros({2}, torch::kLong))) {}
  torch::Tensor seen;
};

TEST(StateDict, AnIntegerBufferIsFilledFromIntegersOfAnyWidth) {
  const std::string path = testing::TempDir() + "state_dict." + std::to_string(getpid());
  const auto seen_in = [&](const std::string& type, const std::string& data) {
    const std::string place = "[0," + std::to_string(data.size()) + "]";
    std::ofstream(path) << read::written::safetensors(
        R"({"seen":{"dtype":")" + type + R"(","shape":[2],"data_offsets":)" + place + "}}", data);
    Counter module;
    const Status loaded = load_state_dict(module, path);
    EXPECT_TRUE(loaded) << type;
    return std::pair{module.seen[0].item<std::int64_t>(), module.seen[1].item<std::int64_t>()};
  };
  using read::written::raw;
  EXPECT_EQ(seen_in("U16", raw<std::uint16_t>({5, 65535})), (std::pair<std::int64_t, std::int64_t>{5, 65535}));
  EXPECT_EQ(seen_in("U32", raw<std::uint32_t>({6, 4294967295})),
            (std::pair<std::int64_t, std::int64_t>{6, 4294967295}));
  EXPECT_EQ(seen_in("U64", raw<std::uint64_t>({7, 8})), (std::pair<std::int64_t, std::int64_t>{7, 8}));
  EXPECT_EQ(seen_in("I8", raw<std::int8_t>({-9, 1})), (std::pair<std::int64_t, std::int64_t>{-9, 1}));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ullage::train
