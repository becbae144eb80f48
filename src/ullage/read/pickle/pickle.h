// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses a pickle into plain data: numbers, strings, lists, tuples and dicts. Nothing is looked up, called or imported,
// so no file can run code. A snapshot that names a class or calls anything is refused; the error gives the offset and
// the name. Checkpoints need classes: there, a class is its name, and an object is an inert record of what the file
// asked for. Names that run programs (pickle_globals.h) are refused in checkpoints, too.
//
// A value has 8 bytes and refers to a container by index, or to the file's own bytes by offset. A value that the file
// shares (a stack frame in a million lists) stays shared. Neither parsing nor freeing recurses, however deep or cyclic
// the file's data is.

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

// The content that is accepted: plain data only (a snapshot), or objects as well (a file of torch.save).
enum class PickleContent : std::uint8_t { Snapshot, Checkpoint };

// The most that a file may ask for. The limits are far above what torch writes for the largest histories. A hostile
// file costs at most some twenty times its own size.
struct PickleLimits {
  std::size_t file_bytes = UINT32_MAX;   // 4 GiB: offsets have 32 bits; a history of ten million events has about 1 GiB
  std::size_t stack = 1u << 25;          // values not yet in a container, as in a list of events written in one piece
  std::size_t marks = 1000;              // containers begun but not ended; snapshots need about ten
  std::size_t containers = 1u << 28;     // lists, tuples and dicts; an event has a dict and at most one list
  std::size_t items = UINT32_MAX;        // values in containers, indexed with 32 bits
  std::size_t string_bytes = 16u << 20;  // the longest seen, a mangled C++ name, had some kilobytes
  std::size_t integer_bytes = 255;       // the longest LONG1; integers above 64 bits are refused where they are used
  std::size_t memo = UINT32_MAX;         // entries; an entry's number must also be below the number of bytes before it
};

class PickleValue {
 public:
  // Only checkpoints contain Bytes, Global, Set, Object and Persistent.
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
    Object,      // what a Global was to make, see PickleObject
    Persistent,  // something outside the pickle; its one item says what
  };

  PickleValue() = default;  // Absent, which no file contains
  PickleValue(Kind kind, std::uint64_t payload) : word_(payload << 4 | std::uint64_t(kind)) {}

  Kind kind() const { return Kind(word_ & 15); }
  bool is_container() const { return kind() >= Kind::List; }
  // Bool: 0 or 1. LongInteger, Float, String, Bytes: offset of the opcode. Global: index of the name. Containers (List
  // and later kinds): index of the container.
  std::uint64_t payload() const { return word_ >> 4; }
  std::int64_t small_integer() const { return std::int64_t(word_) >> 4; }  // only for Integer, which has 60 bits
  std::uint64_t word() const { return word_; }                             // different for different values
  // Equal for the same object and for equal small numbers. Two strings with the same text may compare unequal.
  friend bool operator==(PickleValue, PickleValue) = default;

 private:
  std::uint64_t word_ = 0;
};

struct PickleGlobal {
  std::string_view module, name;
  std::uint64_t offset = 0;
};

// Record of an object that REDUCE, NEWOBJ or NEWOBJ_EX were to make, and of what was put into it later.
struct PickleObject {
  PickleValue made_by;    // nearly always a Global
  PickleValue arguments;  // a Tuple
  PickleValue state;      // given by BUILD; Absent without it
  PickleValue contents;   // Dict or List of what was set (as in an OrderedDict) or appended; else Absent
};

class Pickle final {
 public:
  // Parses a snapshot. BadFile with `name:offset`. `file` must outlive the Pickle, which refers to its bytes.
  static Result<Pickle> parse(std::span<const std::byte> file, const std::string& name,
                              const PickleLimits& limits = {});

  // The same for what torch.save writes. `place` is the offset of `file` in the file `name`. It is added to offsets in
  // error messages, but not to those that offset() returns.
  static Result<Pickle> parse_checkpoint(std::span<const std::byte> file, const std::string& name,
                                         std::uint64_t place = 0, const PickleLimits& limits = {});

  PickleValue root() const { return root_; }
  std::size_t size() const { return file_.size(); }
  std::uint64_t end() const { return end_; }  // offset after the last opcode

  // Returns the items of a container. A dict has its keys and values in turn, in the order in which they were set. A
  // key that was set twice is there twice; its later value counts. An Object has its four parts. Empty for other kinds.
  std::span<const PickleValue> items(PickleValue value) const {
    if (!value.is_container()) return {};
    const Container& one = containers_[value.payload()];
    return std::span(items_).subspan(one.begin, one.size);
  }
  std::string_view string(PickleValue value) const;  // raw bytes; empty unless a String
  PickleGlobal global(PickleValue value) const;      // empty unless a Global
  PickleObject object(PickleValue value) const;      // all Absent unless an Object
  // Returns every Persistent, in the order of the file, even if nothing refers to it.
  std::span<const PickleValue> persistent() const { return persistent_; }
  // None if the value is no integer or does not fit the type. number() takes integers and floats.
  std::optional<std::int64_t> signed_integer(PickleValue value) const;
  std::optional<std::uint64_t> unsigned_integer(PickleValue value) const;
  std::optional<double> number(PickleValue value) const;

  std::size_t container_count() const { return containers_.size(); }
  // Returns the value's offset in `file`. None for Absent, None, Bool and Integer, which keep no offset.
  std::optional<std::uint64_t> offset(PickleValue value) const;

 private:
  friend class PickleParser;
  struct Container {
    std::uint32_t offset = 0;    // of the opcode that made it
    std::uint32_t begin = 0;     // index in items_; equal lists may share it, then with a capacity of 0
    std::uint32_t size = 0;      // values; a dict's keys count, too
    std::uint32_t capacity = 0;  // places from begin on that no other container uses
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
