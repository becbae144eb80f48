// SPDX-License-Identifier: Apache-2.0
// Pickles of checkpoints: classes are read as names, calls of them as records, and names that could run programs are
// refused.
#include "ullage/read/pickle/pickle.h"
#include "ullage/read/pickle/pickle_globals.h"

#include "read/pickle_text.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage::read {
namespace {

using Kind = PickleValue::Kind;
using namespace std::string_literals;

class PickleObjectTest : public testing::Test {
 protected:
  PickleValue read(const std::string& value) {
    file_ = pickled::whole(value);
    auto parsed = Pickle::parse_checkpoint(pickled::bytes(file_), "x");
    EXPECT_TRUE(parsed) << parsed.error().text();
    if (parsed) pickle_ = std::move(parsed).value();
    return pickle_.root();
  }

  std::string file_;
  Pickle pickle_;
};

std::string refusal_of_object(const std::string& value, std::uint64_t place = 0) {
  const std::string file = pickled::whole(value);
  const auto parsed = Pickle::parse_checkpoint(pickled::bytes(file), "x.pt", place);
  return parsed ? "read" : parsed.error().text();
}

TEST_F(PickleObjectTest, ClassesAreNames) {
  for (const std::string& written :
       {"cmy.module\nThing\n"s, pickled::text("my.module") + pickled::text("Thing") + "\x93"}) {
    const PickleGlobal global = pickle_.global(read(written));
    EXPECT_EQ(global.module, "my.module");
    EXPECT_EQ(global.name, "Thing");
    EXPECT_EQ(pickle_.root().kind(), Kind::Global);
  }
  EXPECT_EQ(pickle_.offset(pickle_.root()), file_.size() - 2);  // the offset of STACK_GLOBAL
}

TEST_F(PickleObjectTest, CallsAreRecords) {
  for (const std::string& call : {"R"s, "\x81"s, "}\x92"s}) {  // REDUCE, NEWOBJ, NEWOBJ_EX
    const PickleObject object = pickle_.object(read("ca\nB\nK\7\x85" + call));
    EXPECT_EQ(pickle_.global(object.made_by).name, "B");
    ASSERT_EQ(pickle_.items(object.arguments).size(), 1u);
    EXPECT_EQ(pickle_.items(object.arguments)[0].small_integer(), 7);
    EXPECT_EQ(object.state.kind(), Kind::Absent);
    EXPECT_EQ(object.contents.kind(), Kind::Absent);
  }
}

TEST_F(PickleObjectTest, ObjectsTakeItemsAndAState) {
  // An OrderedDict with two items, each set by an opcode of its own, and with its _metadata.
  const std::string set = pickled::text("b") + "K\2s";
  const PickleObject dict =
      pickle_.object(read("ccollections\nOrderedDict\n)R(" + pickled::text("a") + "K\1u" + set + "}b"));
  const auto items = pickle_.items(dict.contents);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(pickle_.string(items[2]), "b");
  EXPECT_EQ(items[3].small_integer(), 2);
  EXPECT_EQ(dict.state.kind(), Kind::Dict);
  const PickleObject list = pickle_.object(read("ccollections\ndeque\n)R(K\1K\2eK\3a"));
  EXPECT_EQ(pickle_.items(list.contents).size(), 3u);
  EXPECT_EQ(pickle_.items(list.contents)[2].small_integer(), 3);
}

TEST_F(PickleObjectTest, ObjectsTakeAStateAfterOthersWereMade) {
  const PickleValue root = read("(ca\nB\n)R\x94](NNNNe0ca\nC\n)R0h" + std::string(1, '\0') + "K\5bt");
  const auto all = pickle_.items(root);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(pickle_.object(all[0]).state.small_integer(), 5);
  EXPECT_EQ(pickle_.object(all[0]).contents.kind(), Kind::Absent);
}

TEST_F(PickleObjectTest, PersistentIdsAreKept) {
  const PickleValue root = read("K\1QK\2Q\x86");
  ASSERT_EQ(pickle_.persistent().size(), 2u);
  EXPECT_EQ(pickle_.items(root)[1], pickle_.persistent()[1]);
  EXPECT_EQ(pickle_.items(pickle_.persistent()[1])[0].small_integer(), 2);
}

TEST_F(PickleObjectTest, ReadsBytesSetsAndTextOfPython2) {
  EXPECT_EQ(pickle_.string(read("U\3abc")), "abc");
  EXPECT_EQ(pickle_.string(read("T" + pickled::little(3, 4) + "abc")), "abc");
  for (const std::string& bytes : {"C\2hi"s, "B" + pickled::little(2, 4) + "hi", "\x8e" + pickled::little(2, 8) + "hi",
                                   "\x96" + pickled::little(2, 8) + "hi"}) {
    EXPECT_EQ(read(bytes).kind(), Kind::Bytes);
  }
  EXPECT_EQ(pickle_.items(read("\x8f(K\1K\2\x90")).size(), 2u);  // EMPTY_SET, ADDITEMS
  EXPECT_EQ(pickle_.items(read("(K\1K\2\x91")).size(), 2u);      // FROZENSET
  EXPECT_EQ(read("K\5(K\1K\0021").small_integer(), 5);           // POP_MARK
}

TEST(PickleObjectDamage, NamesThatRunProgramsAreRefused) {
  EXPECT_EQ(refusal_of_object("cos\nsystem\n(" + pickled::text("ls") + "tR", 1000),
            "x.pt:1002: names os.system, which runs programs; no weights need it: do not give this file to Python, "
            "take it from another source");
  EXPECT_NE(refusal_of_object(pickled::text("posix") + pickled::text("system") + "\x93").find("names posix.system"),
            std::string::npos);
  EXPECT_NE(refusal_of_object("c__builtin__\neval\n").find("names __builtin__.eval"), std::string::npos);
}

TEST(PickleObjectDamage, WhichNamesRunPrograms) {
  for (const auto& [module, name] : {std::pair("os", "system"),
                                     {"nt", "system"},
                                     {"subprocess", "Popen"},
                                     {"os.path", "join"},
                                     {"builtins", "exec"},
                                     {"builtins", "__import__"},
                                     {"__builtin__", "execfile"},
                                     {"io", "open"},
                                     {"sys", "modules"},
                                     {"importlib", "import_module"},
                                     {"shutil", "rmtree"},
                                     {"runpy", "run_path"},
                                     {"torch.serialization", "os.system"},
                                     {"torch", "_utils.sys.modules"}}) {
    EXPECT_TRUE(runs_programs(module, name)) << module << ' ' << name;
  }
  for (const auto& [module, name] : {std::pair("collections", "OrderedDict"),
                                     {"torch", "FloatStorage"},
                                     {"builtins", "set"},
                                     {"builtins", "getattr"},
                                     {"io", "BytesIO"},
                                     {"pathlib", "PosixPath"},
                                     {"osmium", "Node"},
                                     {"mine.os", "Thing"},
                                     {"mine", "eval"},
                                     {"pytorch_lightning.callbacks.model_checkpoint", "ModelCheckpoint"}}) {
    EXPECT_FALSE(runs_programs(module, name)) << module << ' ' << name;
  }
}

TEST(PickleObjectDamage, WhatTorchNeverWritesIsRefused) {
  EXPECT_EQ(refusal_of_object("(ios\nsystem\n"),
            "x.pt:3: opcode INST (os.system) could run code; torch.save writes no such thing");
  for (const std::string& opcode : {"P"s, "o"s, "\x82"s, "\x83"s, "\x84"s}) {
    EXPECT_NE(refusal_of_object("NN(NN" + opcode + "0000").find("could run code"), std::string::npos) << opcode;
  }
  EXPECT_NE(refusal_of_object("N2").find("opcode DUP does not occur in checkpoints"), std::string::npos);
}

TEST(PickleObjectDamage, MalformedObjectsAreRefused) {
  EXPECT_NE(refusal_of_object("ca\nB\nNR").find("calls with arguments that are not a tuple"), std::string::npos);
  EXPECT_NE(refusal_of_object("]Nb").find("sets the state of a value that is not an object"), std::string::npos);
  EXPECT_NE(refusal_of_object("NN\x93").find("names a class by a value that is not text"), std::string::npos);
  EXPECT_NE(refusal_of_object("ca").find("does not end"), std::string::npos);
  EXPECT_NE(refusal_of_object("c" + std::string(1001, 'a') + "\nB\n").find("does not end"), std::string::npos);
  EXPECT_NE(refusal_of_object("ca\n" + std::string(1001, 'B') + "\n").find("does not end"), std::string::npos);
  EXPECT_NE(refusal_of_object("ca\nB\n)R(NNuNa").find("appends to a value that is not a list"), std::string::npos);
  for (const std::string value :
       {"R", ")R", "\x81", "N\x92", "b", "Nb", "Q", "\x93", "N\x93", "1", "\x90", "(\x90", "\x91"}) {
    EXPECT_NE(refusal_of_object(value), "read") << value;
  }
}

TEST(PickleObjectDamage, SnapshotsStillHoldNoObjects) {
  for (const std::string& value : {"ca\nB\n"s, "ca\nB\n)R"s, "NQ"s, "C\1x"s, "\x8f"s, "U\1x"s}) {
    const std::string file = pickled::whole(value);
    EXPECT_FALSE(Pickle::parse(pickled::bytes(file), "x")) << value;
  }
}

}  // namespace
}  // namespace ullage::read
