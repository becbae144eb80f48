// SPDX-License-Identifier: Apache-2.0
#include "program/safetensors.h"

#include "program/temp_folder.h"

#include <array>
#include <cstring>

namespace ullage::program {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

constexpr std::array<float, 6> kWeights = {1, -2, 3.5f, 4, 5, 6e-30f};
constexpr std::int64_t kStep = 7'000'000'000;
constexpr std::array<std::uint8_t, 3> kState = {9, 8, 7};

Status write_small(const std::string& path) {
  const std::array<TensorToWrite, 3> tensors = {{{"net/weight", {Dtype::F32, {2, 3}}, kWeights.data()},
                                                 {"step", {Dtype::I64, {}}, &kStep},
                                                 {"generator", {Dtype::U8, {3}}, kState.data()}}};
  return write_safetensors(path, tensors, {{"place", "{\"step\":3}"}, {"seed", "1"}});
}

// Returns the error of reading and verifying the file; "" if there is none.
std::string what_is_wrong(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  if (!file) return file.error().text();
  const Status status = file->verify();
  return status ? "" : status.error().text();
}

std::string with_header(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const TempFolder folder;
  ASSERT_TRUE(write_small(folder / "a"));
  const auto file = SafetensorsFile::open(folder / "a");
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_TRUE(file->verify());
  EXPECT_EQ(file->metadata().at("place"), "{\"step\":3}");
  ASSERT_EQ(file->entries().size(), 3u);
  EXPECT_EQ(to_string(file->entries().at("net/weight").shape), "F32 [2, 3]");
  EXPECT_EQ(to_string(file->entries().at("step").shape), "I64 []");

  std::array<float, 6> weights{};
  std::int64_t step = 0;
  std::array<std::uint8_t, 3> state{};
  ASSERT_TRUE(file->read("net/weight", weights.data()));
  ASSERT_TRUE(file->read("step", &step));
  ASSERT_TRUE(file->read("generator", state.data()));
  EXPECT_EQ(weights, kWeights);
  EXPECT_EQ(step, kStep);
  EXPECT_EQ(state, kState);
  EXPECT_THROW((void)file->read("no such tensor", &step), ContractError);
}

TEST(Safetensors, FindsEveryFlippedByte) {
  const TempFolder folder;
  ASSERT_TRUE(write_small(folder / "a"));
  const std::string whole = read_file(folder / "a");
  ASSERT_EQ(what_is_wrong(folder / "a"), "");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_file(folder / "b", damaged);
    EXPECT_NE(what_is_wrong(folder / "b"), "") << "byte " << i << " of " << whole.size();
  }
}

TEST(Safetensors, FindsEveryCut) {
  const TempFolder folder;
  ASSERT_TRUE(write_small(folder / "a"));
  const std::string whole = read_file(folder / "a");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(folder / "b", whole.substr(0, size));
    EXPECT_NE(what_is_wrong(folder / "b").find("damaged"), std::string::npos) << size;
  }
  write_file(folder / "b", whole + "x");
  EXPECT_NE(what_is_wrong(folder / "b").find("the file has " + std::to_string(whole.size() + 1)), std::string::npos);
}

TEST(Safetensors, RefusesMalformedHeaders) {
  const TempFolder folder;
  const std::string data(8, 'x');
  const std::pair<std::string, std::string> cases[] = {
      {"[1]", "not a JSON object"},
      {"{\"a\":3}", "is missing"},
      {R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", "none of F32, I64, U8"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "has 12 bytes"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "bad shape"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", "passes 2^64"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "data_offsets say [4,0]"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "overlap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "hole"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "the file has"},
      {R"({"__metadata__":{"a":1}})", "is not text"},
  };
  for (const auto& [header, expected] : cases) {
    write_file(folder / "b", with_header(header, data));
    const auto file = SafetensorsFile::open(folder / "b");
    ASSERT_FALSE(file) << header;
    EXPECT_EQ(file.error().kind, Error::Kind::BadFile);
    EXPECT_NE(file.error().message.find(expected), std::string::npos) << file.error().message;
  }
  write_file(folder / "b", with_header(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", data));
  EXPECT_NE(what_is_wrong(folder / "b").find("not a checkpoint of this program"), std::string::npos);
}

TEST(Safetensors, SaysWhenThereIsNoFile) {
  const auto file = SafetensorsFile::open("/nowhere/a");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, Error::Kind::NotFound);
}

}  // namespace
}  // namespace ullage::program
