// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/pickle_writer.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>

namespace ullage::report {
namespace {

using namespace std::string_literals;

// Returns what was written, without the two bytes of the protocol and the STOP opcode.
std::string written(const std::function<void(PickleWriter&)>& write) {
  std::ostringstream out;
  PickleWriter pickle(out);
  write(pickle);
  pickle.finish();
  const std::string all = out.str();
  EXPECT_EQ(all.substr(0, 2), "\x80\x04");
  EXPECT_EQ(all.back(), '.');
  return all.substr(2, all.size() - 3);
}

std::string integer(std::int64_t value) {
  return written([&](PickleWriter& p) { p.integer(value); });
}
std::string whole(std::uint64_t value) {
  return written([&](PickleWriter& p) { p.integer(value); });
}
std::string text(const std::string& value) {
  return written([&](PickleWriter& p) { p.text(value); });
}

TEST(PickleWriter, IntegersTakeTheShortestForm) {
  EXPECT_EQ(integer(0), "K\0"s);
  EXPECT_EQ(integer(255), "K\xff");
  EXPECT_EQ(integer(256), "M\0\1"s);
  EXPECT_EQ(integer(65536), "J\0\0\1\0"s);
  EXPECT_EQ(integer(-1), "J\xff\xff\xff\xff");
  EXPECT_EQ(integer(INT32_MAX), "J\xff\xff\xff\x7f");
  EXPECT_EQ(integer(std::int64_t{INT32_MAX} + 1), "\x8a\x08\0\0\0\x80\0\0\0\0"s);
  EXPECT_EQ(integer(std::int64_t{INT32_MIN} - 1), "\x8a\x08\xff\xff\xff\x7f\xff\xff\xff\xff"s);
  EXPECT_EQ(whole(UINT64_MAX), "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"s);
}

TEST(PickleWriter, ATextIsWrittenOnce) {
  EXPECT_EQ(written([](PickleWriter& p) {
              p.begin_list();
              p.text("ab");
              p.text("ab");
              p.end_list();
            }),
            "](\x8c\x02"s + "ab\x94h\0e"s);
  EXPECT_EQ(text(std::string(256, 'x')).substr(0, 5), "X\0\1\0\0"s);
}

TEST(PickleWriter, WhatIsNoUtf8BecomesAQuestionMark) {
  EXPECT_EQ(text("a\xff"
                 "b"),
            "\x8c\x03"
            "a?b\x94");
  EXPECT_EQ(text("\xc3\xa9"), "\x8c\x02\xc3\xa9\x94");
  EXPECT_EQ(text("\xc3"), "\x8c\x01?\x94");
  EXPECT_EQ(text("\xc0\x80"), "\x8c\x02??\x94");
  EXPECT_EQ(text("\xf0\x9f\x98\x80"), "\x8c\x04\xf0\x9f\x98\x80\x94");
  EXPECT_EQ(text("\xf4\x90\x80\x80"), "\x8c\x04????\x94");
}

TEST(PickleWriter, ManyMemosTakeTheLongForm) {
  std::string out = written([](PickleWriter& p) {
    p.begin_list();
    for (int i = 0; i < 257; ++i) p.text(std::to_string(i));
    p.text("256");
    p.end_list();
  });
  EXPECT_EQ(out.substr(out.size() - 6), "j\0\1\0\0e"s);
}

TEST(PickleWriter, RealsAreBigEndian) {
  EXPECT_EQ(written([](PickleWriter& p) { p.real(0.5); }), "G\x3f\xe0\0\0\0\0\0\0"s);
}

}  // namespace
}  // namespace ullage::report
