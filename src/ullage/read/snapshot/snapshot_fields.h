// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the fields of a snapshot's dicts: finds the field of a key and checks numbers. It also keeps what all parts of
// the reader share: the first error, and how much more the file may contain.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/read/pickle/pickle.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::read {

struct SnapshotLimits {
  std::size_t devices = 1024;         // device numbers are below it; torch keeps them in 8 bits
  std::size_t keys = 1024;            // in one dict; torch writes up to sixteen
  std::size_t text_bytes = 1u << 14;  // of a path or name, the rest is cut off; C++ names reach some kilobytes
  std::size_t text_total =
      1u << 28;  // bytes of all paths and names, each distinct frame once; torch writes some megabytes
  // Segments, blocks, events and annotations per byte of the file. Torch spends 30 or more bytes on one, so only a file
  // that refers to the same ones over and over can exceed this.
  double records_per_byte = 1.0 / 8;
  std::uint64_t total_bytes = std::uint64_t(1) << 63;  // of all sizes in the file together, so that sums never overflow
};

class SnapshotSource final {
 public:
  SnapshotSource(const Pickle& pickle, const std::string& name, const SnapshotLimits& limits);

  const Pickle& pickle;
  const SnapshotLimits limits;

  // The first error. After it, values that were read mean nothing, and loops must end.
  const std::optional<Error>& error() const { return error_; }
  bool failed() const { return error_.has_value(); }
  // Records an error at the offset of `near` or, if `near` has none, of the dict entered last. Keeps only the first.
  void fail(PickleValue near, const std::string& message);
  void enter(PickleValue dict) { entered_ = pickle.offset(dict).value_or(entered_); }

  // `what` names the value in messages ("size of a block"); `near` is the dict that contains it. Absent and None count
  // as missing, which is an error unless stated otherwise.
  Bytes bytes(PickleValue value, const char* what, PickleValue near);
  Address address(PickleValue value, const char* what, PickleValue near);
  std::uint64_t handle(PickleValue value, const char* what, PickleValue near);  // missing: 0; negative: its 64 bits
  unsigned device(PickleValue value, const char* what, PickleValue near);       // missing: 0
  std::int64_t integer(PickleValue value, const char* what, PickleValue near);
  bool flag(PickleValue value) const;   // missing: false
  std::string text(PickleValue value);  // made printable, counted against text_total; missing: empty

  // Counts one more segment, block, event or annotation. False if there are too many, or after an error.
  bool count_record(PickleValue near);
  std::uint64_t records_left() const { return records_left_; }
  // Fails if the range passes the end of the address space.
  void check_range(Address address, Bytes size, const char* what, PickleValue near);

 private:
  void wrong(PickleValue value, const char* what, PickleValue near, const char* wanted);

  const std::string& name_;
  std::optional<Error> error_;
  std::uint64_t entered_ = 0;  // offset
  std::uint64_t records_left_;
  std::uint64_t bytes_left_;
  std::size_t text_left_;
};

inline bool is_missing(PickleValue value) { return value.kind() <= PickleValue::Kind::None; }

// Finds which of a list of words a string is. A file shares its strings, so most are recognised without comparing
// texts.
class Words final {
 public:
  explicit Words(std::initializer_list<std::string_view> words) : words_(words) {}

  std::size_t size() const { return words_.size(); }
  // Returns the index in the list; size() for any other word and for what is no string.
  std::size_t find(const Pickle& pickle, PickleValue value);

 private:
  std::vector<std::string_view> words_;
  std::vector<std::pair<PickleValue, std::size_t>> met_;
};

// Reads dicts of one kind. A field is addressed by its index in the list of names.
class Fields final {
 public:
  explicit Fields(std::initializer_list<std::string_view> names) : names_(names), found_(names.size()) {}

  // Fails if `dict` is no dict or has too many keys. Ignores unknown keys: newer versions of torch add some.
  void read(SnapshotSource& source, PickleValue dict, const char* what);
  PickleValue operator[](std::size_t place) const { return found_[place]; }  // of the dict read last
  bool has(std::size_t place) const { return found_[place].kind() != PickleValue::Kind::Absent; }
  PickleValue dict() const { return dict_; }

 private:
  Words names_;
  std::vector<PickleValue> found_;
  PickleValue dict_;
};

}  // namespace ullage::read
