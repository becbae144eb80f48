// SPDX-License-Identifier: Apache-2.0
#pragma once

// The opcodes of a pickle (Python's pickletools names and documents them).

#include <cstdint>
#include <string_view>

namespace ullage::read {

// Opcodes that are read in every file.
enum class PickleOpcode : std::uint8_t {
  Mark = '(',
  Stop = '.',
  Pop = '0',
  BinFloat = 'G',
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  None = 'N',
  BinUnicode = 'X',
  Append = 'a',
  EmptyDict = '}',
  Appends = 'e',
  BinGet = 'h',
  LongBinGet = 'j',
  Get = 'g',
  EmptyList = ']',
  Put = 'p',
  BinPut = 'q',
  LongBinPut = 'r',
  SetItem = 's',
  Tuple = 't',
  EmptyTuple = ')',
  SetItems = 'u',
  Proto = 0x80,
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  NewTrue = 0x88,
  NewFalse = 0x89,
  Long1 = 0x8a,
  Long4 = 0x8b,
  ShortBinUnicode = 0x8c,
  BinUnicode8 = 0x8d,
  Memoize = 0x94,
  Frame = 0x95,
};

// Opcodes for more plain data, read in checkpoints only: bytes, sets, text of Python 2.
enum class CheckpointOpcode : std::uint8_t {
  PopMark = '1',
  BinBytes = 'B',
  ShortBinBytes = 'C',
  BinString = 'T',
  ShortBinString = 'U',
  BinBytes8 = 0x8e,
  EmptySet = 0x8f,
  AddItems = 0x90,
  FrozenSet = 0x91,
  ByteArray8 = 0x96,
};

// Opcodes that name or call something, or fetch it from outside the file. With them a pickle can run any program. In
// checkpoints some are read, but only recorded (pickle_objects.cpp).
enum class CallingOpcode : std::uint8_t {
  PersId = 'P',
  BinPersId = 'Q',
  Reduce = 'R',
  Build = 'b',
  Global = 'c',
  Inst = 'i',
  Obj = 'o',
  NewObj = 0x81,
  Ext1 = 0x82,
  Ext2 = 0x83,
  Ext4 = 0x84,
  NewObjEx = 0x92,
  StackGlobal = 0x93,
};

// Returns whether `opcode` is a CallingOpcode.
bool calls(std::uint8_t opcode);
// "GLOBAL" for 'c'; empty if there is no such opcode.
std::string_view opcode_name(std::uint8_t opcode);

}  // namespace ullage::read
