// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the fields of a snapshot's dicts are read: which field a key is, numbers checked, and what all parts of the
// reader share: the first error, and how much the file may still say.

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
  std::size_t devices = 1024;         // numbers below it; torch counts them in 8 bits
  std::size_t keys = 1024;            // of one dict; torch writes up to sixteen
  std::size_t text_bytes = 1u << 14;  // of a path or name, the rest is cut off; C++ templates reach some kilobytes
  std::size_t text_total =
      1u << 28;  // bytes of all paths and names, each distinct frame once; torch writes some megabytes
  // Segments, blocks, events and annotations, per byte of the file. Torch spends 30 and more bytes on one, so that only
  // a file that names the same ones over and over can pass this.
  double records_per_byte = 1.0 / 8;
  std::uint64_t total_bytes = std::uint64_t(1) << 63;  // all sizes of the file added up: sums of them never overflow
};

class SnapshotSource final {
 public:
  SnapshotSource(const Pickle& pickle, const std::string& name, const SnapshotLimits& limits);

  const Pickle& pickle;
  const SnapshotLimits limits;

  // The first error. From then on values read are zero and mean nothing, and loops end.
  const std::optional<Error>& error() const { return error_; }
  bool failed() const { return error_.has_value(); }
  // Says that what stands at `near` is wrong; where it has no place of its own, the dict entered last is named.
  void fail(PickleValue near, const std::string& message);
  void enter(PickleValue dict) { entered_ = pickle.offset(dict).value_or(entered_); }

  // Each names the thing read, "size of a block"; `near` is the dict that it is in. Absent and None count as missing.
  Bytes bytes(PickleValue value, const char* what, PickleValue near);
  Address address(PickleValue value, const char* what, PickleValue near);
  std::uint64_t handle(PickleValue value, const char* what, PickleValue near);  // missing: 0; below zero: its 64 bits
  unsigned device(PickleValue value, const char* what, PickleValue near);       // missing: 0
  std::int64_t integer(PickleValue value, const char* what, PickleValue near);
  bool flag(PickleValue value) const;   // missing: false
  std::string text(PickleValue value);  // made printable and counted; missing: empty

  // One more segment, block, event or annotation; false when that is too many.
  bool count_record(PickleValue near);
  std::uint64_t records_left() const { return records_left_; }
  // Fails when the range passes the end of the address space.
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

// Which of some words a string is. A file shares its strings, so that most are known again by where they stand.
class Words final {
 public:
  explicit Words(std::initializer_list<std::string_view> words) : words_(words) {}

  std::size_t size() const { return words_.size(); }
  // Place in the list; size() for any other word, or what is no string.
  std::size_t find(const Pickle& pickle, PickleValue value);

 private:
  std::vector<std::string_view> words_;
  std::vector<std::pair<PickleValue, std::size_t>> met_;
};

// The fields of dicts of one kind, by place in the list of their names.
class Fields final {
 public:
  explicit Fields(std::initializer_list<std::string_view> names) : names_(names), found_(names.size()) {}

  // Fails when `dict` is none. What other keys it has is ignored: newer versions of torch add some.
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
