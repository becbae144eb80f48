// SPDX-License-Identifier: Apache-2.0
#include "upscale/model_file.h"

#include "program/temp_folder.h"
#include "read/weights_bytes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

namespace ullage::upscale {
namespace {

using Tensors = std::vector<read::WantedWeight>;

// Writes tensors of zeros to `path` as a safetensors file, and returns `path`. Each name gets `prefix`. The path may
// end in .pth, because a reader goes by the content.
std::string written(const std::string& path, const Tensors& tensors, const std::string& prefix = "") {
  std::string header = "{";
  std::int64_t at = 0;
  for (const auto& [name, shape] : tensors) {
    const std::int64_t end = at + 4 * std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    header += (at > 0 ? ",\"" : "\"") + prefix + name + R"(":{"dtype":"F32","shape":[)";
    for (std::size_t i = 0; i < shape.size(); ++i) header += (i > 0 ? "," : "") + std::to_string(shape[i]);
    header += R"(],"data_offsets":[)" + std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  std::ofstream(path, std::ios::binary) << read::written::safetensors(header + "}",
                                                                      std::string(static_cast<std::size_t>(at), '\0'));
  return path;
}

// A file as the old ESRGAN program wrote it, with `doublings` at the end.
Tensors old_file(std::int64_t doublings) {
  NetworkShape shape{1, doublings, 4, 2, 1};
  LayerNames names;
  const auto n = [](std::int64_t i) { return "model." + std::to_string(i); };
  names.first = n(0);
  names.trunk = "model.1.sub.1";
  names.high = n(3 * doublings + 2);
  names.last = n(3 * doublings + 4);
  for (std::int64_t i = 0; i < doublings; ++i) names.up.push_back(n(3 * i + 3));
  for (int k = 0; k < 15; ++k) {
    names.dense.push_back("model.1.sub.0.RDB" + std::to_string(k / 5 + 1) + ".conv" + std::to_string(k % 5 + 1) + ".0");
  }
  return wanted_of(shape, names);
}

TEST(UpscaleModelFile, KnowsTheScaleOfOldFilesByTheirLastLayers) {
  const test::TempFolder folder;
  for (const std::int64_t doublings : {1, 2}) {
    const auto file = open_model(written(folder / "m.pth", old_file(doublings)), 0);
    ASSERT_TRUE(file.ok()) << file.error().text();
    EXPECT_EQ(file->shape.scale(), std::int64_t{1} << doublings);
    EXPECT_EQ(file->shape.blocks, 1);
    EXPECT_EQ(file->shape.features, 4);
    EXPECT_EQ(file->shape.growth, 2);
  }
}

TEST(UpscaleModelFile, RefusesOtherScales) {
  const test::TempFolder folder;
  for (const std::int64_t doublings : {0, 3}) {
    const auto file = open_model(written(folder / "m.pth", old_file(doublings)), 0);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().message, "its scale is " + std::to_string(1 << doublings) + "; 2 and 4 work");
  }
}

TEST(UpscaleModelFile, SaysWhichScaleItHasInsteadOfTheOneAsked) {
  const test::TempFolder folder;
  const auto file = open_model(written(folder / "m.pth", old_file(2)), 2);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(file.error().message,
            "its scale is 4 and --scale says 2; give the model of that scale, or leave --scale out");
}

TEST(UpscaleModelFile, PrefersTheAveragedWeights) {
  const test::TempFolder folder;
  Tensors both;
  for (const auto& [name, shape] : old_file(2)) both.push_back({"params_ema." + name, shape});
  for (const auto& [name, shape] : old_file(1)) both.push_back({"params." + name, shape});
  const auto file = open_model(written(folder / "m.pth", both), 0);
  ASSERT_TRUE(file.ok()) << file.error().text();
  EXPECT_EQ(file->shape.scale(), 4);
}

TEST(UpscaleModelFile, SaysWhatIsMissingOrExtra) {
  const test::TempFolder folder;
  Tensors tensors = old_file(2);
  tensors.erase(tensors.begin() + 5);
  tensors.push_back({"model.1.sub.0.RDB1.conv1x1.weight", {2, 4, 1, 1}});
  const auto file = open_model(written(folder / "m.pth", tensors), 0);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("1 are missing: model.1.sub.0.RDB1.conv2.0.bias"), std::string::npos)
      << file.error().message;
  EXPECT_NE(file.error().message.find("1 are extra: model.1.sub.0.RDB1.conv1x1.weight"), std::string::npos);
}

TEST(UpscaleModelFile, SaysWhatAnotherNetworkIsAndWhichAreKnown) {
  const test::TempFolder folder;
  const auto said = [&](const Tensors& tensors, const std::string& prefix) {
    const auto file = open_model(written(folder / "m.pth", tensors, prefix), 0);
    EXPECT_FALSE(file.ok());
    return file.ok() ? "" : file.error().message;
  };
  const std::string known =
      "; known are the RRDB networks of ESRGAN and Real-ESRGAN, x4 and x2 (RealESRGAN_x4plus, RealESRGAN_x2plus, "
      "RealESRGAN_x4plus_anime_6B, RRDB_ESRGAN_x4)";
  EXPECT_EQ(said({{"body.0.weight", {1}}, {"body.1.weight", {1}}}, "params."),
            "not a network of ESRGAN or Real-ESRGAN: this is an SRVGGNetCompact (realesr-general-x4v3, "
            "realesr-animevideov3)" +
                known);
  EXPECT_EQ(said({{"decoder.conv_in.weight", {1}}}, "state_dict."),
            "not a network of ESRGAN or Real-ESRGAN: this is a VQGAN (ullage-vqgan-clip)" + known);
  EXPECT_EQ(said({{"fc.weight", {1}}, {"layer1.a", {1}}, {"layer1.b", {1}}}, ""),
            "not a network of ESRGAN or Real-ESRGAN: its names begin with layer1. (2), fc. (1)" + known);
}

}  // namespace
}  // namespace ullage::upscale
