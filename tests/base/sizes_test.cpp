// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"

#include <gtest/gtest.h>

namespace ullage {
namespace {

TEST(Sizes, ReadsEveryUnit) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"4096", 4096},
      {"0", 0},
      {"12B", 12},
      {"1K", 1024},
      {"1KiB", 1024},
      {"1kB", 1000},
      {"900MiB", 943718400},
      {"900 MiB", 943718400},
      {"2M", 2097152},
      {"2MB", 2000000},
      {"2GiB", 2147483648},
      {"1.5GiB", 1610612736},
      {"1.5 GB", 1500000000},
      {"1T", 1099511627776},
      {"1TiB", 1099511627776},
      {"1TB", 1000000000000},
      {".5K", 512},
      {"1.K", 1024},
      {"0.1K", 102},
      {"  7 B ", 7},
      {"1.1GiB", 1181116006},
      {"18446744073709551615", UINT64_MAX},
  };
  for (const auto& [text, bytes] : cases) {
    const Result<Bytes> read = parse_bytes(text);
    ASSERT_TRUE(read) << text << ": " << read.error().text();
    EXPECT_EQ(read->count, bytes) << text;
  }
}

TEST(Sizes, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", " ", "MiB", "-1", "+1", "1 MiB x", "1mib", "1Mb", "1e9", "0x10", "1.2.3G", "1,5GiB", ".",
        "18446744073709551616", "99999999999999999999999999999999999999999999999999 T", "16777216T"}) {
    const Result<Bytes> read = parse_bytes(text);
    ASSERT_FALSE(read) << "'" << text << "' was read as " << read->count;
    EXPECT_EQ(read.error().kind, Error::Kind::BadArgument);
    EXPECT_NE(read.error().message.find("900MiB"), std::string::npos) << "the message shows what is right";
  }
}

TEST(Sizes, PrintsBinaryUnitsRoundedDown) {
  const std::pair<std::uint64_t, const char*> cases[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {1048575, "1023.99 KiB"},
      {1048576, "1.00 MiB"},
      {1181116006, "1.09 GiB"},
      {2147483648, "2.00 GiB"},
      {1099511627776, "1.00 TiB"},
      {UINT64_MAX, "16777215.99 TiB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(to_string(Bytes{bytes}), text);
}

TEST(Sizes, PrintsTheCountBesideTheSize) { EXPECT_EQ(with_count(1536_B), "1.50 KiB (1536 bytes)"); }

TEST(Sizes, WhatIsPrintedCanBeReadBack) {
  for (std::uint64_t count = 1; count < (1ull << 50); count = count * 3 + 1) {
    const Result<Bytes> again = parse_bytes(to_string(Bytes{count}));
    ASSERT_TRUE(again);
    EXPECT_LE(again->count, count);
    EXPECT_GE(again->count, count - count / 90);
  }
}

TEST(Sizes, PrintsTimes) {
  EXPECT_EQ(to_string(Seconds{0.00012}), "120 us");
  EXPECT_EQ(to_string(Seconds{0.0045}), "4.5 ms");
  EXPECT_EQ(to_string(Seconds{12.34}), "12.3 s");
  EXPECT_EQ(to_string(Seconds{200}), "3 min 20 s");
  EXPECT_EQ(to_string(Seconds{7500}), "2 h 05 min");
  EXPECT_EQ(to_string(Seconds{-1}), "0 us");
}

}  // namespace
}  // namespace ullage
