// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/weights_match.h"

#include "read/weights_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ullage::read {
namespace {

using Wanted = std::vector<WantedWeight>;

// Makes a safetensors file of tensors with two bytes each, and matches it.
class WeightsMatch : public testing::Test {
 protected:
  std::string match(const std::vector<std::string>& names, const Wanted& wanted,
                    ExtraWeights extra = ExtraWeights::Refused) {
    std::string header = "{";
    for (std::size_t i = 0; i < names.size(); ++i) {
      header += (i > 0 ? ",\"" : "\"") + names[i] + R"(":{"dtype":"U8","shape":[2],"data_offsets":[)" +
                std::to_string(2 * i) + "," + std::to_string(2 * i + 2) + "]}";
    }
    const std::string file = written::safetensors(header + "}", std::string(2 * names.size(), 'x'));
    const auto weights = Weights::read(pickled::bytes(file), "x.pt");
    EXPECT_TRUE(weights) << weights.error().text();
    const Status status = read::match(*weights, wanted, extra);
    return status ? "" : status.error().text();
  }
};

TEST_F(WeightsMatch, EqualKeysAndShapesMatch) {
  EXPECT_EQ(match({"a", "b"}, {{"b", {2}}, {"a", {2}}}), "");
  EXPECT_EQ(match({}, {}), "");
}

TEST_F(WeightsMatch, EverythingThatDiffersIsSaidAtOnce) {
  EXPECT_EQ(
      match({"a", "b", "c", "d"}, {{"a", {2}}, {"b", {2, 1}}, {"x", {1}}, {"y", {1}}}),
      "x.pt: of 4 tensors, 4 wanted; 2 are missing: x, y; 1 have another shape: b is [2], wanted [2, 1]; 2 are extra: "
      "c, d; give the file that belongs to this program");
}

TEST_F(WeightsMatch, ExtraOnesMayBeAllowed) {
  EXPECT_EQ(match({"a", "loss.x"}, {{"a", {2}}}, ExtraWeights::Allowed), "");
  EXPECT_NE(match({"a", "loss.x"}, {{"a", {2}}}).find("1 are extra: loss.x"), std::string::npos);
  EXPECT_NE(match({"loss.x"}, {{"a", {2}}}, ExtraWeights::Allowed).find("1 are missing: a"), std::string::npos);
}

TEST_F(WeightsMatch, TheNameMayTellWhichOnesAre) {
  const std::string file = written::safetensors(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b.x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
      R"("c.x":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})",
      "xxxx");
  const auto weights = Weights::read(pickled::bytes(file), "x.pt");
  ASSERT_TRUE(weights) << weights.error().text();
  const Wanted wanted = {{"c.x", {1}}};
  const auto status = read::match(*weights, wanted, [](std::string_view name) { return name.starts_with("b."); });
  EXPECT_NE(status.error().text().find("1 are extra: a"), std::string::npos) << status.error().text();
  EXPECT_TRUE(match_floats(*weights, wanted));
  EXPECT_TRUE(match_floats(*weights, Wanted{{"missing", {1}}}));
  EXPECT_EQ(match_floats(*weights, Wanted{{"c.x", {1}}, {"a", {1}}}).error().text(),
            "x.pt: a is of type U8; F16, BF16, F32 and F64 work");
}

TEST_F(WeightsMatch, NoMoreThanTenAreListed) {
  std::vector<std::string> names;
  Wanted wanted;
  for (char c = 'a'; c <= 'k'; ++c) {
    names.push_back(std::string("is_") + c);
    wanted.push_back({std::string("not_") + c, {2}});
  }
  const std::string said = match(names, wanted);
  EXPECT_NE(said.find("11 are missing: not_a, "), std::string::npos) << said;
  EXPECT_NE(said.find("not_j, ...; 11 are extra: is_a, "), std::string::npos) << said;
  EXPECT_EQ(said.find("not_k"), std::string::npos);
  EXPECT_EQ(said.find("is_k"), std::string::npos);
}

TEST_F(WeightsMatch, ACommonPrefixIsNamed) {
  EXPECT_NE(match({"synthesis.a", "synthesis.b", "x.a"}, {{"a", {2}}, {"b", {2}}})
                .find("all keys have the prefix 'synthesis.': take those under it"),
            std::string::npos);
  const std::string in_part = match({"synthesis.a", "x.b"}, {{"a", {2}}, {"b", {2}}});
  EXPECT_EQ(in_part.find("prefix"), std::string::npos);
  EXPECT_NE(in_part.find("give the file"), std::string::npos);
}

}  // namespace
}  // namespace ullage::read
