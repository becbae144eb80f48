// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/weights.h"

#include "real.h"
#include "read/weights_bytes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace ullage::read {
namespace {

using written::ordered_dict;
using written::raw;
using written::storage;
using written::tensor;
using Shape = std::vector<std::int64_t>;

Weights weights_of(const std::string& file) {
  Result<Weights> weights = Weights::read(pickled::bytes(file), "x.pt");
  EXPECT_TRUE(weights) << weights.error().text();
  return weights ? std::move(weights).value() : Weights::read({}, "x").value();
}

std::vector<std::string> names(const Weights& weights) {
  std::vector<std::string> all;
  for (const NamedWeight& one : weights.tensors()) all.push_back(one.name);
  return all;
}

template <class T>
std::vector<T> values(const Weights& weights, const std::string& name) {
  const WeightTensor* found = weights.find(name);
  EXPECT_NE(found, nullptr) << name;
  if (!found) return {};
  std::vector<T> all(found->elements());
  found->copy_to(std::as_writable_bytes(std::span(all)));
  return all;
}

// A zip checkpoint with one tensor "w" over one storage.
std::string one_tensor(const std::string& value, const std::string& bytes) {
  return written::checkpoint("}" + written::items({{"w", value}}), {{"0", bytes}});
}

const std::string kSix = raw<float>({1, 2, 3, 4, 5, 6});
const std::string kObject = ordered_dict({{"conv.weight", tensor(storage("7", 6), 0, {2, 3}, {3, 1})},
                                          {"bias", written::parameter(tensor(storage("8", 2), 0, {2}, {1}))}});
const std::string kTwo = raw<float>({-1, 0.5});

void expect_two_tensors(const Weights& weights) {
  EXPECT_EQ(names(weights), (std::vector<std::string>{"bias", "conv.weight"}));
  EXPECT_EQ(weights.find("conv.weight")->shape, (Shape{2, 3}));
  EXPECT_EQ(weights.find("conv.weight")->dtype, Dtype::F32);
  EXPECT_EQ(values<float>(weights, "conv.weight"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values<float>(weights, "bias"), (std::vector<float>{-1, 0.5}));
  EXPECT_EQ(weights.find("conv"), nullptr);
}

TEST(Weights, ReadsZips) {
  for (const bool in_64 : {false, true}) {
    for (const bool sizes_behind : {false, true}) {
      const written::Zip zip(written::checkpoint_members(kObject, {{"7", kSix}, {"8", kTwo}}), in_64, sizes_behind);
      const Weights weights = weights_of(zip.bytes);
      EXPECT_EQ(weights.format(), WeightsFormat::Zip);
      expect_two_tensors(weights);
    }
  }
}

TEST(Weights, ReadsZipsOfEveryFolderAndByteOrderLeftOut) {
  for (const std::string folder : {"", "archive/", "a name/"}) {
    const std::string file = written::zip({{folder + "data.pkl", written::pickle(kObject)},
                                           {folder + "data/7", kSix},
                                           {folder + "data/8", kTwo},
                                           {"other/deeper/data.pkl", "no pickle"}});
    expect_two_tensors(weights_of(file));
  }
}

TEST(Weights, ReadsTheLegacyForm) {
  const std::string file = written::legacy(kObject, {{"7", kSix}, {"8", kTwo}});
  const Weights weights = weights_of(file);
  EXPECT_EQ(weights.format(), WeightsFormat::Legacy);
  expect_two_tensors(weights);
  // The storages are in another order, and no tensor uses one of them.
  expect_two_tensors(weights_of(written::legacy(kObject, {{"8", kTwo}, {"7", kSix}})));
  expect_two_tensors(weights_of(written::legacy("(" + storage("9", 1) + kObject + "t" + "\x94" + "0" + kObject,
                                                {{"7", kSix}, {"9", "1234"}, {"8", kTwo}})));
}

TEST(Weights, ReadsSafetensors) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"conv.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}}   )";
  const std::string file = written::safetensors(header, kSix + kTwo);
  const Weights weights = weights_of(file);
  EXPECT_EQ(weights.format(), WeightsFormat::Safetensors);
  expect_two_tensors(weights);
}

TEST(Weights, ReadsTorchScriptModules) {
  const std::string linear = written::script_module(
      "torch.nn.Linear", {{"weight", tensor(storage("0", 6), 0, {2, 3}, {3, 1})}, {"training", "\x88"}});
  const std::string root =
      written::script_module("M", {{"_hook", "N"}, {"scale", tensor(storage("1", 2), 1, {}, {})}, {"fc", linear}});
  auto members = written::checkpoint_members(root, {{"0", kSix}, {"1", kTwo}});
  members.push_back({"archive/constants.pkl", written::pickle(")")});
  members.push_back({"archive/code/__torch__.py", "deflated", 8});
  const std::string file = written::zip(members);
  const Weights weights = weights_of(file);
  EXPECT_EQ(weights.format(), WeightsFormat::TorchScript);
  EXPECT_EQ(names(weights), (std::vector<std::string>{"fc.weight", "scale"}));
  EXPECT_EQ(values<float>(weights, "scale"), std::vector<float>{0.5});
}

TEST(Weights, ReadsEveryTypeOfTorch) {
  const std::tuple<const char*, Dtype, const char*> types[] = {{"BoolStorage", Dtype::Bool, "bool"},
                                                               {"ByteStorage", Dtype::U8, "uint8"},
                                                               {"CharStorage", Dtype::I8, "int8"},
                                                               {"ShortStorage", Dtype::I16, "int16"},
                                                               {"IntStorage", Dtype::I32, "int32"},
                                                               {"LongStorage", Dtype::I64, "int64"},
                                                               {"HalfStorage", Dtype::F16, "float16"},
                                                               {"BFloat16Storage", Dtype::BF16, "bfloat16"},
                                                               {"FloatStorage", Dtype::F32, "float32"},
                                                               {"DoubleStorage", Dtype::F64, "float64"},
                                                               {"ComplexFloatStorage", Dtype::C64, "complex64"},
                                                               {"ComplexDoubleStorage", Dtype::C128, "complex128"}};
  for (const auto& [type, dtype, torch] : types) {
    std::string bytes(3 * size_of(dtype).count, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i + 1);
    const std::string value = tensor(storage("0", 3, type), 1, {2}, {1});
    for (const std::string& file : {one_tensor(value, bytes), written::legacy("}" + written::items({{"w", value}}),
                                                                              {{"0", bytes, size_of(dtype).count}})}) {
      const Weights weights = weights_of(file);
      const WeightTensor& found = *weights.find("w");
      EXPECT_EQ(found.dtype, dtype) << type;
      EXPECT_EQ(torch_name(found.dtype), torch);
      std::string copy(found.bytes().count, '\0');
      found.copy_to(std::as_writable_bytes(std::span(copy)));
      EXPECT_EQ(copy, bytes.substr(size_of(dtype).count)) << type;
    }
  }
}

TEST(Weights, ReadsTypesNewerThanTypedStorages) {
  for (const auto& [torch, dtype] : {std::pair("uint16", Dtype::U16),
                                     {"uint32", Dtype::U32},
                                     {"uint64", Dtype::U64},
                                     {"float8_e4m3fn", Dtype::F8E4M3},
                                     {"float8_e5m2", Dtype::F8E5M2}}) {
    const auto size = std::int64_t(size_of(dtype).count);
    const std::string file =
        one_tensor(written::tensor_v3(storage("0", 2 * size, "UntypedStorage"), torch, 2), std::string(2 * size, 'x'));
    EXPECT_EQ(weights_of(file).find("w")->dtype, dtype) << torch;
  }
}

TEST(Weights, ReadsEveryTypeOfSafetensors) {
  for (const char* name : {"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F8_E4M3", "F8_E5M2", "F16",
                           "BF16", "F32", "F64", "C64"}) {
    const auto dtype = dtype_named(name);
    ASSERT_TRUE(dtype) << name;
    EXPECT_EQ(name_of(*dtype), name);
    const auto size = std::to_string(2 * size_of(*dtype).count);
    const std::string file = written::safetensors(
        R"({"w":{"dtype":")" + std::string(name) + R"(","shape":[2],"data_offsets":[0,)" + size + "]}}",
        std::string(2 * size_of(*dtype).count, 'x'));
    EXPECT_EQ(weights_of(file).find("w")->dtype, *dtype);
  }
}

TEST(Weights, ReadsOneValueAndNone) {
  const std::string file =
      one_tensor("(" + tensor(storage("0", 6), 5, {}, {}) + tensor(storage("0", 6), 0, {0, 3}, {3, 1}) + "t", kSix);
  const Weights weights = weights_of(file);
  EXPECT_EQ(values<float>(weights, "w.0"), std::vector<float>{6});
  EXPECT_EQ(weights.find("w.0")->shape, Shape{});
  EXPECT_EQ(weights.find("w.1")->shape, (Shape{0, 3}));
  EXPECT_EQ(weights.find("w.1")->bytes(), Bytes{0});
}

TEST(Weights, ViewsOfOneStorageShareIt) {
  const std::string shared = storage("0", 6) + "\x94";
  const std::string file =
      one_tensor("(" + tensor(shared, 0, {3, 2}, {1, 3}) + tensor("h" + std::string(1, '\0'), 1, {2, 2}, {3, 1}) +
                     tensor(storage("0", 6), 2, {3}, {0}) + "t",
                 kSix);
  const Weights weights = weights_of(file);
  EXPECT_EQ(values<float>(weights, "w.0"), (std::vector<float>{1, 4, 2, 5, 3, 6}));  // transposed
  EXPECT_EQ(values<float>(weights, "w.1"), (std::vector<float>{2, 3, 5, 6}));        // columns
  EXPECT_EQ(values<float>(weights, "w.2"), (std::vector<float>{3, 3, 3}));           // expanded
  EXPECT_FALSE(weights.find("w.0")->is_contiguous());
  for (const char* name : {"w.1", "w.2"}) {
    EXPECT_EQ(weights.find(name)->storage.data(), weights.find("w.0")->storage.data());
    EXPECT_EQ(weights.find(name)->storage.size(), 24u);
  }
}

TEST(Weights, NamesArePaths) {
  const std::string one = tensor(storage("0", 6), 0, {6}, {1});
  const std::string file =
      written::checkpoint("}(" + pickled::text("state_dict") + ordered_dict({{"a.b", one}}) +    // a dotted key
                              pickled::text("optimizer_states") + "](}(" + "K\3" + one + "ue" +  // an index, a number
                              pickled::text("none") + "N" + pickled::text("epoch") + "K\5" + "u",
                          {{"0", kSix}});
  EXPECT_EQ(names(weights_of(file)), (std::vector<std::string>{"optimizer_states.0.3", "state_dict.a.b"}));
  EXPECT_EQ(names(weights_of(written::checkpoint(one, {{"0", kSix}}))), std::vector<std::string>{""});
}

TEST(Weights, ReadsOrderedDictsOfPython2) {
  const std::string pair = "](" + pickled::text("w") + tensor(storage("0", 6), 0, {6}, {1}) + "e";
  const std::string file =
      written::checkpoint(written::global("collections", "OrderedDict") + "](" + pair + "e\x85R", {{"0", kSix}});
  EXPECT_EQ(names(weights_of(file)), std::vector<std::string>{"w"});
}

// Has what Lightning writes: a class as a key, objects of classes that are not installed here, a bound method.
TEST(Weights, UnknownClassesAreInert) {
  const std::string one = tensor(storage("0", 6), 0, {6}, {1});
  const std::string callback = written::global("pytorch_lightning.callbacks.model_checkpoint", "ModelCheckpoint");
  const std::string config =
      written::global("omegaconf.dictconfig", "DictConfig") + ")\x81}" + written::items({{"hidden", one}}) + "b";
  const std::string file = written::checkpoint(
      "}(" + callback + "}" + written::items({{"best", "K\1"}}) + pickled::text("config") + config +
          pickled::text("method") + written::global("builtins", "getattr") + config + pickled::text("step") + "\x86R" +
          pickled::text("made_of") + written::global("torch._utils", "_rebuild_sparse_tensor") + one + "\x85R" +
          pickled::text("state_dict") + ordered_dict({{"w", one}}) + "u",
      {{"0", kSix}});
  EXPECT_EQ(names(weights_of(file)), std::vector<std::string>{"state_dict.w"});
}

TEST(Weights, UnderTakesAPrefixOff) {
  const std::string one = tensor(storage("0", 6), 0, {6}, {1});
  const std::string file =
      written::checkpoint("}" + written::items({{"a.x", one}, {"a.y", one}, {"ab", one}, {"b.x", one}}), {{"0", kSix}});
  const Weights weights = weights_of(file);
  EXPECT_EQ(names(weights.under("a.")), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(weights.under("a.").find("y")->data(), weights.find("a.y")->data());
  EXPECT_EQ(names(weights.under("c.")), std::vector<std::string>{});
  EXPECT_EQ(names(weights.under("")), names(weights));
}

TEST(Weights, TensorsLieInTheFileItself) {
  const std::string files[] = {
      written::checkpoint(kObject, {{"7", kSix}, {"8", kTwo}}), written::legacy(kObject, {{"7", kSix}, {"8", kTwo}}),
      written::safetensors(R"({"conv.weight":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}})", kSix)};
  for (const std::string& file : files) {
    const Weights weights = weights_of(file);
    const auto* data = reinterpret_cast<const char*>(weights.find("conv.weight")->data());
    EXPECT_EQ(data, file.data() + file.find(kSix));
  }
}

TEST(Weights, PartsKeepTheMappingAlive) {
  const std::string path = testing::TempDir() + "weights_test_mapping.pt";
  std::ofstream(path, std::ios::binary) << written::checkpoint(kObject, {{"7", kSix}, {"8", kTwo}});
  Weights part = [&] {
    const Result<Weights> whole = Weights::open(path);
    EXPECT_TRUE(whole) << whole.error().text();
    return whole.value().under("conv.");
  }();
  std::remove(path.c_str());
  EXPECT_EQ(part.file(), path);
  EXPECT_EQ(values<float>(part, "weight"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

// Reads files that torch 2.13 wrote. If torch is installed, test_weights_against_torch.py compares many more.
TEST(Weights, ReadsWhatTorchWrites) {
  const auto open = [](const char* file) {
    Result<Weights> weights = Weights::open((data_folder() / "weights" / file).string());
    EXPECT_TRUE(weights) << weights.error().text();
    return std::move(weights).value();
  };
  const std::tuple<const char*, WeightsFormat, std::size_t> files[] = {
      {"state_dict_legacy_2.pt", WeightsFormat::Legacy, 12},
      {"lightning_legacy_4.pt", WeightsFormat::Legacy, 30},
      {"types_legacy_4.pt", WeightsFormat::Legacy, 12},
      {"types_zip_2.pt", WeightsFormat::Zip, 12},
      {"no_checksums.pt", WeightsFormat::Zip, 9},
      {"script_scaled.pt", WeightsFormat::TorchScript, 2},
      {"safe.safetensors", WeightsFormat::Safetensors, 11}};
  for (const auto& [file, format, count] : files) {
    EXPECT_EQ(open(file).format(), format) << file;
    EXPECT_EQ(open(file).tensors().size(), count) << file;
  }
  const Weights script = open("script_scaled.pt");
  EXPECT_EQ(values<float>(script, "scale"), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(script.find("scale")->strides, (Shape{1, 2}));
  EXPECT_EQ(values<std::int64_t>(script, "count"), std::vector<std::int64_t>{7});
  const Weights views = open("no_checksums.pt");
  EXPECT_EQ(views.find("transposed")->storage.data(), views.find("part")->storage.data());
  EXPECT_EQ(values<float>(views, "scalar"), std::vector<float>{3.5});
  EXPECT_EQ(values<float>(views, "expanded"), (std::vector<float>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(values<float>(open("lightning_legacy_4.pt").under("state_dict.layers.1.norm."), "running_var").size(), 3u);
}

TEST(Weights, WhatIsNotThereIsSaid) {
  const Result<Weights> none = Weights::open("/nowhere/a.pt");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Error::Kind::NotFound);
}

// Returns this process's resident KiB of mapped files.
std::uint64_t resident_file_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stoull(line.substr(8));
  }
  ADD_FAILURE() << "no RssFile";
  return 0;
}

TEST(Weights, LetGoOfWhatWasRead) {
  constexpr std::int64_t kFloats = 4 << 20;  // 16 MiB
  const std::string path = ::testing::TempDir() + "let_go.pt";
  std::ofstream(path, std::ios::binary) << one_tensor(tensor(storage("0", kFloats), 0, {kFloats}, {1}),
                                                      std::string(4 * kFloats, '\x3f'));
  const auto weights = Weights::open(path);
  ASSERT_TRUE(weights) << weights.error().text();
  const std::uint64_t before = resident_file_kib();
  EXPECT_GT(values<float>(*weights, "w").back(), 0.7f);
  EXPECT_GE(resident_file_kib(), before + 12 * 1024);
  weights->let_go(weights->find("w")->storage);
  EXPECT_LE(resident_file_kib(), before + 512);
  EXPECT_GT(values<float>(*weights, "w").front(), 0.7f);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ullage::read
