// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes plain data as a Python pickle of protocol 4: dicts, lists, pairs, integers, floats, booleans and texts. Source
// of the opcodes: CPython, Lib/pickletools.py.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ullage::report {

class PickleWriter final {
 public:
  // A value that was written and can be written again in a few bytes, as the same object.
  struct Memo {
    std::uint32_t index = 0;
  };

  explicit PickleWriter(std::ostream& out);

  // Between begin and end of a dict come key, value, key, value; between those of a list its values.
  void begin_dict();
  void end_dict();
  void begin_list();
  void end_list();
  // Makes a tuple of the last two values.
  void end_pair();

  void integer(std::int64_t value);
  void integer(std::uint64_t value);
  void real(double value);
  void boolean(bool value);
  // UTF-8; other bytes become '?'. A text that is written again becomes the same object.
  void text(std::string_view value);

  // Remembers the value written last. Call it right after that value.
  Memo remember();
  void again(Memo memo);

  void finish();

 private:
  void byte(unsigned value);
  void little_endian(std::uint64_t value, int bytes);

  std::ostream& out_;
  std::uint32_t memos_ = 0;
  std::unordered_map<std::string, Memo> texts_;
};

}  // namespace ullage::report
