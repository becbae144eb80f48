// SPDX-License-Identifier: Apache-2.0
// Profiler traces that are damaged or malicious.
#include "read/profile_trace.h"
#include "ullage/read/profile/profile.h"

namespace ullage::read {
namespace {

std::string refusal_of_profile(const std::string& json) {
  const auto profile = read_profile(json, "x.json");
  if (profile) return "read";
  EXPECT_EQ(profile.error().kind, Error::Kind::BadFile);
  EXPECT_EQ(profile.error().where.rfind("x.json:", 0), 0u) << profile.error().where;
  return profile.error().text();
}

bool profile_says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

std::string small_trace() {
  return ProfileText()
      .memory(1, 512, 0x1000, 512, 2097152)
      .span("cpu_op", "aten::empty \xc3\xbc", 0, 2)
      .memory(2, -512, 0x1000, 0, 2097152)
      .text();
}

// A trace of one event with one argument set to `value`.
std::string with_argument(const std::string& key, const std::string& value) {
  const std::string size = key == "Bytes" ? "" : "\"Bytes\": 512, ";
  return R"({"traceEvents": [{"ph": "i", "name": "[memory]", "tid": 1, "ts": 5, "args": {)" + size + "\"" + key +
         "\": " + value + "}}]}";
}

TEST(ProfileDamage, CutOffAtEveryByteIsRefused) {
  const std::string whole = small_trace();
  ASSERT_EQ(refusal_of_profile(whole), "read");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(profile_says(refusal_of_profile(whole.substr(0, size)), "not valid JSON")) << size;
}

TEST(ProfileDamage, AnyChangedByteIsReadOrRefused) {
  const std::string whole = small_trace();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char c : {'\0', '"', '{', '}', '[', ']', '9', '-', '.', 'e', '\\', '\xff'}) {
      std::string changed = whole;
      changed[at] = c;
      refusal_of_profile(changed);
    }
}

TEST(ProfileDamage, SaysTheOffsetOfASyntaxError) {
  EXPECT_TRUE(profile_says(refusal_of_profile(R"({"traceEvents": [nan]})"), "x.json:18: not valid JSON"))
      << refusal_of_profile(R"({"traceEvents": [nan]})");
}

TEST(ProfileDamage, NotANumberIsRefused) {
  EXPECT_TRUE(profile_says(refusal_of_profile(with_argument("Bytes", "NaN")), "not valid JSON"));
}

TEST(ProfileDamage, SizesBeyond64BitsAreRefused) {
  for (const char* size : {"18446744073709551616", "-18446744073709551616", "9223372036854775807",
                           "-9223372036854775808", "1e30", "512.5", "\"512\"", "null", "[512]", "{}", "true"})
    EXPECT_TRUE(profile_says(refusal_of_profile(with_argument("Bytes", size)), "without a size"))
        << size << refusal_of_profile(with_argument("Bytes", size));
  EXPECT_TRUE(profile_says(refusal_of_profile(with_argument("Bytes", "1e999")), "not valid JSON"));
}

TEST(ProfileDamage, SizesThatAddUpBeyond64BitsAreRefused) {
  const long long half = 1ll << 61;
  EXPECT_TRUE(profile_says(refusal_of_profile(ProfileText().memory(1, half, 1).memory(2, half, 2).text()),
                           "add up to more than"));
  EXPECT_EQ(refusal_of_profile(ProfileText().memory(1, half, 1, half, half).text()), "read");
}

TEST(ProfileDamage, TotalsBeyond64BitsAreAsIfNotGiven) {
  EXPECT_EQ(refusal_of_profile(with_argument("Total Allocated", "99999999999999999999999")), "read");
  EXPECT_EQ(refusal_of_profile(with_argument("Total Reserved", "-9223372036854775808")), "read");
  EXPECT_EQ(refusal_of_profile(with_argument("Addr", "18446744073709551615")), "read");
}

TEST(ProfileDamage, TimesBeyond64BitsAreRefused) {
  for (const char* time :
       {"1e30", "99999999999999999999", "-9223372036854775808", "\"5\"", "null", "9999999999999999999.5"}) {
    std::string json = with_argument("Addr", "1");
    json.replace(json.find("\"ts\": 5"), 7, std::string("\"ts\": ") + time);
    EXPECT_TRUE(profile_says(refusal_of_profile(json), "without a time")) << time;
  }
}

TEST(ProfileDamage, DevicesThatCannotBeAreRefused) {
  EXPECT_TRUE(profile_says(refusal_of_profile(with_argument("Device Id", "-2")), "device -2"));
  EXPECT_TRUE(profile_says(refusal_of_profile(with_argument("Device Type", "4294967296")), "of type 4294967296"));
}

TEST(ProfileDamage, JsonThatIsNoTraceIsRefused) {
  for (const char* json :
       {"{}", "[]", "5", "null", "\"text\"", R"({"model": {"traceEvents": []}})", R"([[{"ph": "X"}]])"})
    EXPECT_TRUE(profile_says(refusal_of_profile(json), "not a profiler trace")) << json;
  EXPECT_TRUE(profile_says(refusal_of_profile(R"({"traceEvents": []})"), "profile_memory=True"));
  EXPECT_TRUE(profile_says(refusal_of_profile(R"([{"ph": "X", "name": "aten::mm"}])"), "profile_memory=True"));
}

TEST(ProfileDamage, ABareListOfEventsIsRead) {
  EXPECT_EQ(refusal_of_profile(R"([{"ph": "i", "name": "[memory]", "ts": 1.5e3, "args": {"Bytes": 512}}])"), "read");
}

TEST(ProfileDamage, DepthCostsNothing) {
  const std::size_t deep = 3000000;
  EXPECT_TRUE(profile_says(refusal_of_profile(std::string(deep, '[')), "not valid JSON"));
  EXPECT_TRUE(
      profile_says(refusal_of_profile(std::string(deep, '[') + std::string(deep, ']')), "not a profiler trace"));
  std::string nested = small_trace();
  nested.insert(nested.find("\"Bytes\""), "\"x\": " + std::string(deep, '[') + std::string(deep, ']') + ", ");
  EXPECT_EQ(refusal_of_profile(nested), "read");
}

TEST(ProfileDamage, LongTextsAreReadAndNotQuoted) {
  const std::string text(std::size_t{100} << 20, 'a');
  EXPECT_EQ(refusal_of_profile(with_argument("Call stack", "\"" + text + "\"")), "read");
  EXPECT_LT(refusal_of_profile("{\"traceEvents\": \"" + text.substr(0, std::size_t{1} << 20)).size(), 400u);
}

TEST(ProfileDamage, ManyOpenSpansDoNotMultiply) {
  // 20,000 nested spans are open at each of 20,000 events. Looking at each span for each event would take 4e8 steps.
  ProfileText text;
  for (int i = 0; i < 20000; ++i)
    text.span("cpu_op", "op", i, 100000 - 2 * i).memory(30000 + i, 512, static_cast<unsigned>(i + 1));
  const auto profile = text.read();
  ASSERT_EQ(profile.devices.size(), 1u);
  EXPECT_EQ(profile.stacks.frames(profile.devices[0].trace.storages[0].stack).size(), 128u);
}

}  // namespace
}  // namespace ullage::read
