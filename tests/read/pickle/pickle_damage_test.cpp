// SPDX-License-Identifier: Apache-2.0
// Pickles that are damaged or malicious.
#include "ullage/read/pickle/pickle.h"
#include "ullage/read/pickle/pickle_opcodes.h"

#include "read/pickle_text.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage::read {
namespace {

// Returns the error of reading a file; "read" if there is none.
std::string refusal_of_file(const std::string& file, const PickleLimits& limits = {}) {
  const auto parsed = Pickle::parse(pickled::bytes(file), "x.pickle", limits);
  if (parsed) return "read";
  EXPECT_EQ(parsed.error().kind, Error::Kind::BadFile);
  return parsed.error().text();
}
std::string refusal(const std::string& value, const PickleLimits& limits = {}) {
  return refusal_of_file(pickled::whole(value), limits);
}

TEST(PickleDamage, OsSystemIsRefusedByName) {
  EXPECT_EQ(refusal_of_file("\x80\x04"
                            "cposix\nsystem\n(\x8c\x02ls\x85R."),
            "x.pickle:2: opcode GLOBAL (posix.system) could run code; a memory snapshot holds only data");
  EXPECT_EQ(refusal("\x8c\x05posix\x8c\x06system\x93\x8c\x02ls\x85R"),
            "x.pickle:17: opcode STACK_GLOBAL (posix.system) could run code; a memory snapshot holds only data");
  EXPECT_EQ(refusal("(ios\nsystem\n"),
            "x.pickle:3: opcode INST (os.system) could run code; a memory snapshot holds only data");
}

TEST(PickleDamage, EverythingThatCallsIsRefused) {
  for (const std::string name : {"PERSID", "BINPERSID", "REDUCE", "BUILD", "GLOBAL", "INST", "OBJ", "NEWOBJ", "EXT1",
                                 "EXT2", "EXT4", "NEWOBJ_EX", "STACK_GLOBAL"}) {
    int met = 0;
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      if (opcode_name(std::uint8_t(opcode)) != name) continue;
      ++met;
      const std::string said = refusal("NN(NN" + std::string(1, char(opcode)) + "os\nsystem\n");
      EXPECT_EQ(said.rfind("x.pickle:7: opcode " + name, 0), 0u) << said;
      EXPECT_NE(said.find("could run code"), std::string::npos) << said;
    }
    EXPECT_EQ(met, 1) << name;
  }
}

TEST(PickleDamage, NamesAskedForCannotSteerATerminal) {
  EXPECT_NE(refusal("c\x1b[2J\nx\n").find("(?[2J.x)"), std::string::npos);
  EXPECT_NE(refusal("cposix").find("(posix..)"), std::string::npos);  // the file ends in the name
}

TEST(PickleDamage, OtherOpcodesAreRefusedByNameOrNumber) {
  EXPECT_EQ(refusal("C\1x"), "x.pickle:2: opcode SHORT_BINBYTES does not occur in memory snapshots");
  EXPECT_EQ(refusal("\xff"), "x.pickle:2: byte 255 is not a pickle opcode: the file is damaged");
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    (void)refusal(std::string(1, char(opcode)));  // alone
    (void)refusal("NNN(NNNN" + std::string(1, char(opcode)) + "00000000");
  }
}

TEST(PickleDamage, WhatIsNoPickleIsRefused) {
  EXPECT_EQ(refusal_of_file(""), "x.pickle:0: the file is empty");
  EXPECT_EQ(refusal_of_file("{}"),
            "x.pickle:0: not a pickle of protocol 2 or later: it begins with byte 123, not with 128");
  EXPECT_EQ(refusal_of_file("\x80\x06N."), "x.pickle:0: pickle protocol 6; 5 is the newest known");
}

TEST(PickleDamage, CutOffAtEveryByteIsRefused) {
  const std::string file = pickled::whole(
      "\x95" + pickled::little(30, 8) + pickled::dict({{"a", pickled::list({pickled::integer(5), pickled::real()})}}) +
      "\x94" + std::string("h\0", 2) + std::string("j\0\0\0\0", 5) + "\x87");
  ASSERT_EQ(refusal_of_file(file), "read");
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(refusal_of_file(file.substr(0, size)), "read") << size;
}

TEST(PickleDamage, MemoOfTwoToThe31IsRefused) {
  EXPECT_EQ(refusal("Nr" + pickled::little(1u << 31, 4)),
            "x.pickle:3: memo entry 2147483648 after only 8 bytes: the file is damaged");
  EXPECT_NE(refusal("Np18446744073709551615\n").find("memo entry 18446744073709551615"), std::string::npos);
  EXPECT_NE(refusal("Np99999999999999999999\n").find("has no number"), std::string::npos);
  EXPECT_NE(refusal("Np-1\n").find("has no number"), std::string::npos);
}

TEST(PickleDamage, MemoEntriesNeverPutAreRefused) {
  for (const std::string& get :
       {std::string("h\5"), std::string("j\xff\xff\xff\xff"), std::string("g7\n"), std::string("gx\n")}) {
    EXPECT_NE(refusal(get + "0000").find("memo entry that is not there"), std::string::npos);
  }
  // The memo has entries 0 and 2, but not 1.
  EXPECT_NE(refusal("N\x94q\2h\1").find("memo entry that is not there"), std::string::npos);
}

TEST(PickleDamage, LengthsBeyondTheFileAreRefused) {
  EXPECT_EQ(refusal("X" + pickled::little(100, 4)),
            "x.pickle:2: needs 100 bytes more, 1 are left: the file is cut short or damaged");
  EXPECT_NE(refusal("\x8c\x09").find("cut short"), std::string::npos);
  EXPECT_NE(refusal("\x8d" + pickled::little(UINT64_MAX, 8)).find("the limit for snapshots"), std::string::npos);
  EXPECT_NE(refusal("\x95" + pickled::little(UINT64_MAX, 8)).find("cut short"), std::string::npos);
  EXPECT_NE(refusal("\x8a\x09").find("cut short"), std::string::npos);
  EXPECT_NE(refusal("\x8b" + pickled::little(UINT32_MAX, 4)).find("the limit for snapshots"), std::string::npos);  // -1
}

TEST(PickleDamage, OpcodesWithTooFewValuesAreRefused) {
  for (const std::string value : {"",     "e",     "u",    "t", "a", "s",  "(a", "]a", "N(a", "}Ns",
                                  "\x85", "N\x86", "\x94", "(", "0", "(e", "(u", "](", "q",   "Nq"}) {
    EXPECT_NE(refusal(value), "read") << value;
  }
}

TEST(PickleDamage, ItemsForWhatHoldsNoneAreRefused) {
  EXPECT_NE(refusal("NNa").find("appends to a value that is not a list"), std::string::npos);
  EXPECT_NE(refusal("}(Ne").find("appends to a value that is not a list"), std::string::npos);
  EXPECT_NE(refusal(")(NNu").find("a value that is not a dict"), std::string::npos);
  EXPECT_NE(refusal("}(Nu").find("a key without a value"), std::string::npos);
}

TEST(PickleDamage, EveryLimitIsKept) {
  const auto with = [](auto member, std::size_t most) {
    PickleLimits limits;
    limits.*member = most;
    return limits;
  };
  const std::string value = "(](NNNe](NNNe\x8c\3abc\x94t";
  ASSERT_EQ(refusal(value), "read");
  const auto holds = [&](auto member, std::size_t needed) {
    EXPECT_EQ(refusal(value, with(member, needed)), "read");
    EXPECT_NE(refusal(value, with(member, needed - 1)).find("the limit for snapshots"), std::string::npos) << needed;
  };
  holds(&PickleLimits::file_bytes, pickled::whole(value).size());
  holds(&PickleLimits::stack, 5);
  holds(&PickleLimits::marks, 2);
  holds(&PickleLimits::containers, 3);
  holds(&PickleLimits::items, 9);
  holds(&PickleLimits::string_bytes, 3);
  holds(&PickleLimits::memo, 1);
  EXPECT_NE(refusal(pickled::integer(1), with(&PickleLimits::integer_bytes, 7)).find("bytes of an integer"),
            std::string::npos);
}

}  // namespace
}  // namespace ullage::read
