// SPDX-License-Identifier: Apache-2.0
// Files of weights that are damaged or malicious.
#include "ullage/read/weights/checkpoint_pickle.h"
#include "ullage/read/weights/safetensors_header.h"
#include "ullage/read/weights/weights.h"

#include "read/weights_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ullage::read {
namespace {

using written::items;
using written::ordered_dict;
using written::storage;
using written::tensor;

const std::string kSixWeights = written::raw<float>({1, 2, 3, 4, 5, 6});
const std::string kWhole = tensor(storage("0", 6), 0, {2, 3}, {3, 1});
const std::string kObjectOfWeights = ordered_dict({{"w", kWhole}, {"v", tensor(storage("0", 6), 1, {2}, {2})}});
const std::string kScript = written::script_module("M", {{"w", kWhole}});

// Reads every element of every tensor, as a program would.
std::uint64_t sum_of(const Weights& weights) {
  std::uint64_t sum = 0;
  for (const NamedWeight& one : weights.tensors()) {
    if (one.tensor.bytes() > Bytes{1u << 20}) continue;  // an expanded tensor may be far larger than its file
    std::vector<std::byte> copy(one.tensor.bytes().count);
    one.tensor.copy_to(copy);
    for (const std::byte byte : copy) sum += std::to_integer<unsigned>(byte);
  }
  return sum;
}

// Returns the error of reading a file; "read" if there is none.
std::string refusal_of_weights(const std::string& file) {
  const auto weights = Weights::read(pickled::bytes(file), "x.pt");
  if (weights) {
    (void)sum_of(*weights);
    return "read";
  }
  EXPECT_EQ(weights.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(weights.error().where.rfind("x.pt:", 0), 0u) << weights.error().text();
  return weights.error().text();
}
std::string of_object(const std::string& object) {
  return refusal_of_weights(written::checkpoint(object, {{"0", kSixWeights}}));
}
std::string of_tensor(const std::string& value) { return of_object("}" + items({{"w", value}})); }
bool says_weights(const std::string& said, std::string_view what) {
  if (said.find(what) != std::string::npos) return true;
  ADD_FAILURE() << said;
  return false;
}

std::vector<std::string> every_format() {
  auto script = written::checkpoint_members(kScript, {{"0", kSixWeights}});
  script.push_back({"archive/constants.pkl", written::pickle(")")});
  return {written::checkpoint(kObjectOfWeights, {{"0", kSixWeights}}), written::Zip(script, true, true).bytes,
          written::legacy(kObjectOfWeights, {{"0", kSixWeights}}),
          written::safetensors(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", kSixWeights)};
}

TEST(WeightsDamage, CutOffAtEveryByteIsRefused) {
  for (const std::string& whole : every_format()) {
    ASSERT_EQ(refusal_of_weights(whole), "read");
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(refusal_of_weights(whole.substr(0, size)), "read") << size;
  }
}

TEST(WeightsDamage, BytesBehindTheEndAreRefused) {
  for (const std::string& whole : every_format()) EXPECT_NE(refusal_of_weights(whole + "x"), "read");
}

// A changed byte may give another name or another number in a tensor, which no reader can notice. The promise is an
// error, or tensors that lie within the file; the sanitizers check the latter.
TEST(WeightsDamage, EveryFlippedByteIsReadOrRefused) {
  for (const std::string& whole : every_format()) {
    std::size_t refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned flip : {1u, 0x20u, 0x80u, 0xffu}) {
        std::string damaged = whole;
        damaged[at] = char(std::uint8_t(damaged[at]) ^ flip);
        refused += refusal_of_weights(damaged) != "read";
      }
    }
    EXPECT_GT(refused, whole.size() / 2);
  }
}

TEST(WeightsDamage, EveryFlippedByteOfAZipsPickleIsFound) {
  const std::string whole = written::checkpoint(kObjectOfWeights, {{"0", kSixWeights}});
  const std::size_t begin = whole.find(
                        "\x80\x02"
                        "ccollections"),
                    end = whole.find("PK", begin);
  for (std::size_t at = begin; at < end; ++at) {
    std::string damaged = whole;
    damaged[at] = char(damaged[at] ^ 4);
    EXPECT_TRUE(says_weights(refusal_of_weights(damaged), "checksum of data.pkl")) << at;
  }
}

TEST(WeightsDamage, AChecksumThatIsLeftOutIsNotMissed) {
  written::Zip zip(written::checkpoint_members(kObjectOfWeights, {{"0", kSixWeights}}), false, true);
  zip.put(zip.directory[0] + 16, 0, 4);  // as torch writes after set_crc32_options(False)
  EXPECT_EQ(refusal_of_weights(zip.bytes), "read");
}

TEST(WeightsDamage, WhatRunsProgramsIsRefusedWithItsPlaceInTheFile) {
  const std::string call = written::global("os", "system") + "(" + pickled::text("rm -rf /") + "tR";
  const std::string object = "}(" + pickled::text("w") + kWhole + pickled::text("x") + call + "u";
  for (const std::string& file :
       {written::checkpoint(object, {{"0", kSixWeights}}), written::legacy(object, {{"0", kSixWeights}})}) {
    const std::string said = refusal_of_weights(file);
    EXPECT_EQ(
        said.rfind("x.pt:" + std::to_string(file.find("cos\nsystem")) + ": names os.system, which runs programs", 0),
        0u)
        << said;
  }
  EXPECT_TRUE(says_weights(
      refusal_of_weights(written::legacy_head() + written::pickle(kObjectOfWeights) + written::pickle(call)),
      "names os.system"));
  EXPECT_TRUE(says_weights(refusal_of_weights(written::kMagic + written::pickle(call)), "names os.system"));
}

TEST(WeightsDamage, WhatHoldsNoWeightsIsSaid) {
  EXPECT_EQ(refusal_of_weights(""),
            "x.pt:0: an empty file; expected a file of torch.save, a TorchScript archive, or a safetensors file");
  EXPECT_TRUE(says_weights(refusal_of_weights("\x89PNG\r\n"), "a PNG picture; expected"));
  EXPECT_TRUE(says_weights(refusal_of_weights("hello"), "no weights; expected"));
  EXPECT_TRUE(
      says_weights(refusal_of_weights(pickled::whole(kObjectOfWeights)), "a pickle, but not one of torch.save"));
  EXPECT_TRUE(says_weights(refusal_of_weights(written::zip({{"word/document.xml", "x"}})),
                           "a zip archive of 1 entries without data.pkl"));
  EXPECT_TRUE(says_weights(refusal_of_weights(written::zip({})), "a zip archive of 0 entries without data.pkl"));
}

TEST(WeightsDamage, ArchivesThatContradictThemselvesAreRefused) {
  EXPECT_TRUE(says_weights(refusal_of_weights(written::checkpoint(kObjectOfWeights, {})), "has no entry data/0"));
  EXPECT_TRUE(says_weights(refusal_of_weights(written::checkpoint(kObjectOfWeights, {{"0", kSixWeights.substr(1)}})),
                           "entry data/0 has 23 bytes, its tensor needs 24"));
  auto members = written::checkpoint_members(kObjectOfWeights, {{"0", kSixWeights}});
  members[1].bytes = "big";
  EXPECT_TRUE(says_weights(refusal_of_weights(written::zip(members)), "byte order 'big', expected 'little'"));
  members = written::checkpoint_members(kObjectOfWeights, {{"0", kSixWeights}});
  for (const std::size_t i : {0u, 1u, 2u}) {
    auto deflated = members;
    deflated[i].method = 8;
    EXPECT_TRUE(says_weights(refusal_of_weights(written::zip(deflated)),
                             "entry '" + members[i].name + "' is compressed (method 8)"));
  }
  members.push_back({"b/data.pkl", members[0].bytes});
  EXPECT_TRUE(says_weights(refusal_of_weights(written::zip(members)), "a second entry data.pkl"));
}

TEST(WeightsDamage, LegacyFilesThatContradictThemselvesAreRefused) {
  using written::legacy_head;
  using written::legacy_tail;
  const std::string object = written::pickle(kObjectOfWeights), tail = legacy_tail({{"0", kSixWeights}});
  ASSERT_EQ(refusal_of_weights(legacy_head() + object + tail), "read");
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head(true, 1002) + object + tail),
                           "protocol 1002 of torch.save, 1001 is known"));
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head(false) + object + tail), "big endian"));
  EXPECT_TRUE(says_weights(
      refusal_of_weights(written::kMagic + written::pickle("M\xe9\3") + written::pickle("}") + object + tail),
      "in which order bytes"));
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head() + object + legacy_tail({{"1", kSixWeights}})),
                           "the list of keys has '1'"));
  EXPECT_TRUE(
      says_weights(refusal_of_weights(legacy_head() + object + legacy_tail({{"0", kSixWeights}, {"0", kSixWeights}})),
                   "or has it twice"));
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head() + object + legacy_tail({})),
                           "storage '0' is not among the 0 keys"));
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head() + object + legacy_tail({{"0", kSixWeights.substr(4)}})),
                           "is cut short"));
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head() + object + legacy_tail({{"0", kSixWeights + "1234"}})),
                           "has 7 elements here and 6 in its tensor"));
  const std::string both = "(" + kWhole + tensor(storage("0", 3), 0, {1}, {1}) + "t";
  EXPECT_TRUE(says_weights(refusal_of_weights(legacy_head() + written::pickle(both) + tail),
                           "storage '0' has 12 bytes, and 24 elsewhere"));
}

TEST(WeightsDamage, StoragesOfUnknownKindAreRefused) {
  EXPECT_TRUE(says_weights(of_tensor(tensor(storage("0", 6, "QInt8Storage"), 0, {1}, {1})),
                           "storage '0' is a torch.QInt8Storage"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(storage("0", INT64_MAX / 4 + 1), 0, {1}, {1})),
                           "no number of elements below 2^63 bytes"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(storage("0", -1), 0, {1}, {1})), "no number of elements"));
  EXPECT_TRUE(
      says_weights(of_tensor(tensor(storage("0", 6, "FloatStorage", "(NNNt"), 0, {1}, {1})), "a view of another one"));
  EXPECT_EQ(of_tensor(tensor(storage("0", 6, "FloatStorage", "N"), 0, {1}, {1})), "read");
  EXPECT_TRUE(
      says_weights(of_tensor(tensor("(" + pickled::text("storage") + "tQ", 0, {1}, {1})), "is described by 1 values"));
  EXPECT_TRUE(says_weights(of_tensor(tensor("(" + pickled::text("module") + "NNtQ", 0, {1}, {1})), "not a storage"));
  EXPECT_TRUE(says_weights(of_tensor(tensor("N", 0, {1}, {1})), "tensor 'w': is made of"));
  EXPECT_TRUE(says_weights(of_tensor(written::tensor_v3(storage("0", 24, "UntypedStorage"), "qint8", 1)),
                           "elements of a type that is not known"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(storage("0", 24, "UntypedStorage"), 0, {1}, {1})),
                           "elements of a type that is not known"));
}

TEST(WeightsDamage, TensorsBeyondTheirStorageAreRefused) {
  const std::string six = storage("0", 6);
  EXPECT_TRUE(
      says_weights(of_tensor(tensor(six, 1, {2, 3}, {3, 1})),
                   "tensor 'w': shape [2, 3] with strides [3, 1] from element 1 needs 7 elements, the storage has 6"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(six, 7, {0}, {1})), "begins at element 7"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(six, -1, {1}, {1})), "offset, shape and strides are not integers"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(six, 0, {-1}, {1})), "is below zero"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(six, 0, {INT64_MAX, INT64_MAX}, {0, 0})), "passes 2^63 bytes"));
  EXPECT_TRUE(says_weights(of_tensor(tensor(six, 0, {1, 1}, {1})), "2 extents, 1 strides"));
  EXPECT_EQ(refusal_of_weights(
                written::checkpoint("}" + items({{"w", tensor(storage("0", 5), 0, {5}, {1})}}), {{"0", kSixWeights}})),
            "read");
}

// Reads a checkpoint under limits that are low enough for a test to reach.
std::string with_limits(const std::string& object, const CheckpointLimits& limits) {
  const std::string file = written::pickle(object), name = "x.pt";
  const auto pickle = Pickle::parse_checkpoint(pickled::bytes(file), name);
  EXPECT_TRUE(pickle) << pickle.error().text();
  const auto tensors = named_tensors(
      {*pickle, name}, [](const CheckpointStorageId&) { return Result(pickled::bytes(kSixWeights)); }, limits);
  return tensors ? "read" : tensors.error().text();
}

TEST(WeightsDamage, EveryLimitIsKept) {
  const std::string object = "](" + ("}" + items({{"abc", kWhole}})) + kWhole + "N" + "e";
  const auto holds = [&](std::size_t CheckpointLimits::*member, std::size_t needed, std::string_view what) {
    CheckpointLimits limits;
    limits.described_per_byte = 0;
    limits.*member = needed;
    EXPECT_EQ(with_limits(object, limits), "read") << what;
    limits.*member = needed - 1;
    EXPECT_TRUE(says_weights(with_limits(object, limits), what));
  };
  holds(&CheckpointLimits::depth, 2, "containers in each other, the limit");
  holds(&CheckpointLimits::values, 5, "values in each other, the limit");
  holds(&CheckpointLimits::name_bytes, 3, "a tensor's name of 3 bytes");
  holds(&CheckpointLimits::described, 3 + 2 * (32 + sizeof(NamedWeight)), "take more than");
  holds(&CheckpointLimits::dimensions, 2, "or more than 1");
}

// Two bytes of a pickle name a tensor once more, so a small file could name huge numbers of them.
TEST(WeightsDamage, ATensorThatIsNamedTooOftenIsRefused) {
  const auto often = [](std::size_t times) {
    return "](" + kWhole + "\x94" + pickled::times(times, "h" + std::string(1, '\0')) + "e";
  };
  EXPECT_EQ(with_limits(often(1000), {}), "read");
  EXPECT_TRUE(says_weights(with_limits(often(100'000), {}), "take more than"));
}

TEST(WeightsDamage, LoopsAndBillionLaughsEnd) {
  const std::string zero(1, '\0');
  EXPECT_TRUE(says_weights(with_limits("]\x94h" + zero + "a", {}), "more than 100 containers in each other"));
  EXPECT_TRUE(
      says_weights(with_limits("}\x94" + pickled::text("a") + "h" + zero + "s", {}), "more than 100 containers"));
  std::string all = "](NNNNNNNNNNe\x94";
  for (char i = 0; i < 60; ++i) all += "](" + pickled::times(10, "h" + std::string(1, i)) + "e\x94";
  EXPECT_TRUE(says_weights(with_limits(all, {}), "more than 16777216 values"));
}

// Parameters can be nested. Without a limit, a long chain of them would be walked again from each of its links.
TEST(WeightsDamage, WrappingsAreLookedIntoFourTimes) {
  for (const std::size_t wrappings : {4u, 5u, 100'000u}) {
    const std::string wrapped = pickled::times(wrappings, written::global("torch._utils", "_rebuild_parameter")) +
                                kWhole + pickled::times(wrappings, "\x85R");
    const std::string file = written::checkpoint(wrapped, {{"0", kSixWeights}});
    const auto weights = Weights::read(pickled::bytes(file), "x.pt");
    ASSERT_TRUE(weights) << weights.error().text();
    EXPECT_EQ(weights.value().tensors().size(), wrappings == 4 ? 1u : 0u) << wrappings;
  }
}

TEST(WeightsDamage, NamesThatAreTwiceAreRefused) {
  EXPECT_TRUE(says_weights(of_object("}" + items({{"w", kWhole}, {"w", kWhole}})), "key 'w' is twice"));
  EXPECT_TRUE(says_weights(of_object("}(" + pickled::text("3") + kWhole + "K\3" + kWhole + "u"), "key '3' is twice"));
  EXPECT_TRUE(says_weights(of_object("}" + items({{"a.b", kWhole}, {"a", "}" + items({{"b", kWhole}})}})),
                           "two tensors are called 'a.b'"));
}

TEST(WeightsDamage, MalformedSafetensorsAreRefused) {
  const auto said = [](const std::string& header) {
    return refusal_of_weights(written::safetensors(header, std::string(8, 'x')));
  };
  ASSERT_EQ(said(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"), "read");
  for (const auto& [header, expected] : {
           std::pair(R"({"a":3})", "is missing"),
           {R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}})", "type \"F4\" is none that is known"},
           {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
            "F32 [3] has 12 bytes, data_offsets say [0,8]"},
           {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "bad shape"},
           {R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", "bad shape"},
           {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", "passes 2^64"},
           {R"({"a":{"dtype":"U8","shape":[0,9223372036854775807],"data_offsets":[8,8]}})", "hole"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "data_offsets say [4,0]"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "hole at byte"},
           {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "the tensors end at byte"},
           {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
            "ends 12 bytes after the header, but the file has only 8"},
           {R"({"__metadata__":{"a":1}})", "is not text"},
           {R"({"__metadata__":[]})", "is not an object"},
           {R"({"a":[[[[1]]]]})", "not a JSON object of tensors"},
           {R"({"a":)", "not a JSON object of tensors"},
       }) {
    EXPECT_TRUE(says_weights(said(header), expected));
  }
  EXPECT_TRUE(says_weights(refusal_of_weights(pickled::little(100, 8) + "{}"),
                           "the header states 100 bytes for itself, but the file has 10"));
  const Status large = check_safetensors_length(200'000'000, 300'000'000, "x");
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().text().find("more than the 100000000 that a header may have"), std::string::npos)
      << large.error().text();
}

TEST(WeightsDamage, DeepJsonTakesNoMemory) {
  const std::string deep = "{\"a\":" + pickled::times(1'000'000, "[");
  EXPECT_TRUE(says_weights(refusal_of_weights(written::safetensors(deep, "")), "not a JSON object of tensors"));
}

}  // namespace
}  // namespace ullage::read
