// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/content_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage::read {
namespace {

using namespace std::string_literals;

auto kind(const std::string& text) { return kind_of(std::as_bytes(std::span(text))); }

void expect_kind(const std::string& text, ContentKind expected) {
  const auto found = kind(text);
  ASSERT_TRUE(std::holds_alternative<ContentKind>(found)) << text << ": " << std::get<ForeignContent>(found).what;
  EXPECT_EQ(std::get<ContentKind>(found), expected) << text;
}

std::string foreign(const std::string& text) {
  const auto found = kind(text);
  return std::holds_alternative<ForeignContent>(found) ? std::string(std::get<ForeignContent>(found).what)
                                                       : "a known kind";
}

TEST(ContentKind, KnowsWhatCanBeExplained) {
  expect_kind("\x1f\x8b\x08", ContentKind::Gzip);
  for (const char protocol : {'\2', '\3', '\4', '\5'}) expect_kind("\x80"s + protocol + "}.", ContentKind::Snapshot);
  expect_kind(R"({"schemaVersion": 1, "traceEvents": []})", ContentKind::Profile);
  expect_kind("\xef\xbb\xbf \n {\"traceEvents\": []}", ContentKind::Profile);
  expect_kind(R"([ {"ph": "i", "ts": 1}])", ContentKind::Profile);
  expect_kind("ULLAGE TRACE 1\n\0\0\0"s, ContentKind::Trace);
  expect_kind("ULLAGE TRACE 99\n"s, ContentKind::Trace);  // the reader of traces refuses the version, not this one
  expect_kind("ULLAGE TRACES are nice", ContentKind::Text);
  expect_kind("RuntimeError: CUDA out of memory.", ContentKind::Text);
}

TEST(ContentKind, TakesLogsThatLookLikeJsonForText) {
  expect_kind(R"({"exception_type": "torch.OutOfMemoryError", "exception_message": "Allocation on device 0"})",
              ContentKind::Text);
  expect_kind("{\"level\": \"info\"}\n{\"level\": \"error\"}\n", ContentKind::Text);
  expect_kind("[2024-05-01 10:00:00] training", ContentKind::Text);
  expect_kind("[rank0]: Traceback (most recent call last):", ContentKind::Text);
  for (const char* text : {"[", "{", "[ ", "[]", "{}", "[\n\n"}) expect_kind(text, ContentKind::Text);
}

TEST(ContentKind, TellsWhatSomethingElseIs) {
  EXPECT_EQ(foreign("PK\x03\x04..."), "a zip archive, as torch.save writes checkpoints");
  EXPECT_EQ(foreign("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9"), "a checkpoint of torch.save in its old form");
  EXPECT_EQ(foreign("\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"s),
            "a safetensors file");
  EXPECT_EQ(foreign("\x7f"
                    "ELF\2"),
            "a program or library (ELF)");
  EXPECT_EQ(foreign("\x89PNG\r\n"), "a PNG picture");
  EXPECT_EQ(foreign("(dp0\nS'segments'"), "a pickle of an old protocol (0)");
  EXPECT_EQ(foreign("(lp0\n(dp1"), "a pickle of an old protocol (0)");
  EXPECT_EQ(foreign("}q\0(X"s), "a pickle of an old protocol (1)");
  EXPECT_EQ(foreign("]q\0(X"s), "a pickle of an old protocol (1)");
  EXPECT_EQ(foreign(R"({"segments": [], "device_traces": [[]]})"), "a memory snapshot printed as JSON");
  EXPECT_EQ(foreign("{'segments': [], 'device_traces': [[]]}"), "a memory snapshot printed by Python");
  EXPECT_EQ(foreign("<!DOCTYPE html><html>"), "an HTML page");
  EXPECT_EQ(foreign(" \r\n\t"), "a file without anything in it");
  EXPECT_EQ(foreign(std::string(100, '\0')), "binary data of an unknown kind");
  EXPECT_EQ(foreign("\x28\xb5\x2f\xfd"), "zstd data");
}

TEST(ContentKind, WideTextBecomesNarrow) {
  expect_kind(
      "\xff\xfe"
      "C\0U\0"s,
      ContentKind::WideText);
  const auto text = [](const std::string& wide) { return narrow(std::as_bytes(std::span(wide))); };
  EXPECT_EQ(text("\xff\xfe"
                 "C\0U\0"s),
            "CU");
  EXPECT_EQ(text("\xfe\xff\0C\0U"s), "CU");
  EXPECT_EQ(text("\xff\xfe\xe9\0\xac\x20\x3d\xd8\x00\xde"s), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(text("\xff\xfe\x3d\xd8"
                 "C\0\x00\xde"s),
            "?C?");
  EXPECT_EQ(text("\xff\xfe"
                 "C\0U"s),
            "C");
  EXPECT_EQ(text("\xff\xfe"s), "");
}

}  // namespace
}  // namespace ullage::read
