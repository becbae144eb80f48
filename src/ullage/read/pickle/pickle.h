// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pickle taken apart into plain data: numbers, strings, lists, tuples and dicts. Nothing is looked up, called or
// imported, so no file can run code. A snapshot that names a class or calls anything is refused with its offset and
// what it asked for. In a checkpoint, which cannot do without, a class is its name and what is made of it an inert
// object: a record of what the file asked for; names that run programs (pickle_globals.h) are refused there, too.
//
// Values are 8 bytes and refer by index to containers, or by offset to the file's own bytes. What the file shares (a
// stack frame named by a million lists) stays shared, and what it nests is never walked: neither reading nor freeing
// recurses, however deep or cyclic it is.

#include "ullage/base/result.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

// What may stand in a file: a snapshot's plain data, or objects besides, as torch.save writes them.
enum class PickleContent : std::uint8_t { Snapshot, Checkpoint };

// What a file may ask for, far above what torch writes for the largest histories, and low enough that a hostile file
// costs at most some twenty times its own size.
struct PickleLimits {
  std::size_t file_bytes = UINT32_MAX;   // offsets are kept in 32 bits; a history of ten million events has one
  std::size_t stack = 1u << 25;          // values not yet in a container: a list of events written in one piece
  std::size_t marks = 1000;              // containers begun and not ended; snapshots need about ten
  std::size_t containers = 1u << 28;     // lists, tuples and dicts; a dict for each event, at most a list besides
  std::size_t items = UINT32_MAX;        // values in containers; their places are 32 bits wide
  std::size_t string_bytes = 16u << 20;  // longest met: some kilobytes, of a mangled C++ name
  std::size_t integer_bytes = 255;       // longest LONG1; what 64 bits cannot hold is refused where it is used
  std::size_t memo = UINT32_MAX;         // entries; besides, an entry's number is below the number of bytes before it
};

class PickleValue {
 public:
  // Bytes and all from Global on, but for lists, tuples and dicts, are met in checkpoints only.
  enum class Kind : std::uint8_t {
    Absent,
    None,
    Bool,
    Integer,
    LongInteger,
    Float,
    String,
    Bytes,
    Global,  // a class or function, by name
    List,
    Tuple,
    Dict,
    Set,
    Object,      // what a Global was to make: PickleObject
    Persistent,  // what lies outside the pickle: its one item says what
  };

  PickleValue() = default;  // Absent: not a value of any file
  PickleValue(Kind kind, std::uint64_t payload) : word_(payload << 4 | std::uint64_t(kind)) {}

  Kind kind() const { return Kind(word_ & 15); }
  bool is_container() const { return kind() >= Kind::List; }
  // Bool: 0 or 1. LongInteger, Float, String, Bytes: offset of the opcode. Global: index of the name. List and all
  // behind it: index of the container.
  std::uint64_t payload() const { return word_ >> 4; }
  std::int64_t small_integer() const { return std::int64_t(word_) >> 4; }  // of Integer: 60 bits
  std::uint64_t word() const { return word_; }                             // different for different values
  // Equal for the same object and for equal small numbers; two equal strings of a file may differ.
  friend bool operator==(PickleValue, PickleValue) = default;

 private:
  std::uint64_t word_ = 0;
};

struct PickleGlobal {
  std::string_view module, name;
  std::uint64_t offset = 0;
};

// What REDUCE, NEWOBJ or NEWOBJ_EX were to make, of what, and what was put into it later.
struct PickleObject {
  PickleValue made_by;    // nearly always a Global
  PickleValue arguments;  // a Tuple
  PickleValue state;      // of BUILD; Absent without
  PickleValue contents;   // a Dict or List of what was set or appended (OrderedDict is one); Absent without
};

class Pickle final {
 public:
  // BadFile with `name:offset`. The bytes must outlive the Pickle.
  static Result<Pickle> parse(std::span<const std::byte> file, const std::string& name,
                              const PickleLimits& limits = {});

  // The same for what torch.save writes. `place` is where the bytes stand in the file `name`: it is added to the
  // offsets in messages, not to those that offset() gives.
  static Result<Pickle> parse_checkpoint(std::span<const std::byte> file, const std::string& name,
                                         std::uint64_t place = 0, const PickleLimits& limits = {});

  PickleValue root() const { return root_; }
  std::size_t size() const { return file_.size(); }
  std::uint64_t end() const { return end_; }  // offset behind the last opcode

  // The items of a list or tuple; of a dict its keys and values in turn, in the order in which they were set, a key
  // that was set twice standing there twice (the latter counts). Empty for all else.
  std::span<const PickleValue> items(PickleValue value) const {
    if (!value.is_container()) return {};
    const Container& one = containers_[value.payload()];
    return std::span(items_).subspan(one.begin, one.size);
  }
  std::string_view string(PickleValue value) const;  // raw bytes; empty unless a String
  PickleGlobal global(PickleValue value) const;      // empty unless a Global
  PickleObject object(PickleValue value) const;      // all Absent unless an Object
  // Every Persistent of the file, in its order, whether or not anything refers to it.
  std::span<const PickleValue> persistent() const { return persistent_; }
  // Nothing where the value is no integer or lies beyond the type.
  std::optional<std::int64_t> signed_integer(PickleValue value) const;
  std::optional<std::uint64_t> unsigned_integer(PickleValue value) const;
  std::optional<double> number(PickleValue value) const;

  std::size_t container_count() const { return containers_.size(); }
  // Where the value stands in the file; nothing for what is too small to have a place of its own.
  std::optional<std::uint64_t> offset(PickleValue value) const;

 private:
  friend class PickleParser;
  struct Container {
    std::uint32_t offset = 0;    // of its opcode
    std::uint32_t begin = 0;     // in items_, where equal lists may stand at one place
    std::uint32_t size = 0;      // of a dict keys and values
    std::uint32_t capacity = 0;  // places that are its own from begin on
  };

  std::span<const std::byte> file_;
  std::vector<Container> containers_;
  std::vector<PickleValue> items_;
  std::vector<PickleGlobal> globals_;
  std::vector<PickleValue> persistent_;
  PickleValue root_;
  std::uint64_t end_ = 0;
};

}  // namespace ullage::read
