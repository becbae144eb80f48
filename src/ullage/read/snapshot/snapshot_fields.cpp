// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot_fields.h"

#include "ullage/read/file/printable.h"

#include <algorithm>

namespace ullage::read {
namespace {

// So many keys are recognized by identity. In a file that writes each key anew, the keys are compared as texts, which
// takes a little longer.
constexpr std::size_t kStringsKnown = 32;

std::string described(const Pickle& pickle, PickleValue value) {
  using Kind = PickleValue::Kind;
  if (const auto integer = pickle.signed_integer(value)) return std::to_string(*integer);
  if (const auto integer = pickle.unsigned_integer(value)) return std::to_string(*integer);
  switch (value.kind()) {
    case Kind::Absent:
      return "missing";
    case Kind::None:
      return "None";
    case Kind::Bool:
      return value.payload() != 0 ? "True" : "False";
    case Kind::LongInteger:
      return "an integer of more than 64 bits";
    case Kind::Float:
      return "a float";
    case Kind::String:
      return "a string";
    case Kind::List:
      return "a list";
    case Kind::Tuple:
      return "a tuple";
    default:
      return "a dict";
  }
}

}  // namespace

SnapshotSource::SnapshotSource(const Pickle& from, const std::string& name, const SnapshotLimits& most)
    : pickle(from),
      limits(most),
      name_(name),
      records_left_(std::uint64_t(double(from.size()) * most.records_per_byte)),
      bytes_left_(most.total_bytes),
      text_left_(most.text_total) {}

void SnapshotSource::fail(PickleValue near, const std::string& message) {
  if (failed()) return;
  const std::uint64_t offset = pickle.offset(near).value_or(entered_);
  error_ = Error{Error::Kind::BadFile, message, name_ + ":" + std::to_string(offset)};
}

void SnapshotSource::wrong(PickleValue value, const char* what, PickleValue near, const char* wanted) {
  const bool has_place = pickle.offset(value).has_value();
  fail(has_place ? value : near, std::string(what) + " is " + described(pickle, value) + ", not " + wanted);
}

Bytes SnapshotSource::bytes(PickleValue value, const char* what, PickleValue near) {
  const auto count = pickle.unsigned_integer(value);
  if (!count) return wrong(value, what, near, "a number of bytes"), Bytes{};
  if (*count >= bytes_left_) {
    fail(near, std::string(what) + " is " + std::to_string(*count) + ": all sizes together pass " +
                   std::to_string(limits.total_bytes) + " bytes");
    return {};
  }
  bytes_left_ -= *count;
  return {*count};
}

// Accepts negative numbers: one of torch's writers uses them for addresses in the upper half of 64 bits.
Address SnapshotSource::address(PickleValue value, const char* what, PickleValue near) {
  if (is_missing(value)) wrong(value, what, near, "an address");
  return {handle(value, what, near)};
}

std::uint64_t SnapshotSource::handle(PickleValue value, const char* what, PickleValue near) {
  if (is_missing(value)) return 0;
  if (const auto plain = pickle.unsigned_integer(value)) return *plain;
  if (const auto below_zero = pickle.signed_integer(value)) return std::uint64_t(*below_zero);
  wrong(value, what, near, "an integer of 64 bits");
  return 0;
}

unsigned SnapshotSource::device(PickleValue value, const char* what, PickleValue near) {
  if (is_missing(value)) return 0;
  const auto number = pickle.unsigned_integer(value);
  if (number && *number < limits.devices) return unsigned(*number);
  wrong(value, what, near, "a device's number");
  return 0;
}

std::int64_t SnapshotSource::integer(PickleValue value, const char* what, PickleValue near) {
  const auto number = pickle.signed_integer(value);
  if (!number) wrong(value, what, near, "an integer of 64 bits");
  return number.value_or(0);
}

bool SnapshotSource::flag(PickleValue value) const {
  return value.kind() == PickleValue::Kind::Bool ? value.payload() != 0 : pickle.signed_integer(value).value_or(0) != 0;
}

std::string SnapshotSource::text(PickleValue value) {
  std::string clean = printable(pickle.string(value), limits.text_bytes);
  if (clean.size() > text_left_) {
    fail(value, "paths and names of more than " + std::to_string(limits.text_total) + " bytes together");
    return {};
  }
  text_left_ -= clean.size();
  return clean;
}

bool SnapshotSource::count_record(PickleValue near) {
  if (records_left_ == 0) {
    fail(near, "the file of " + std::to_string(pickle.size()) +
                   " bytes names the same segments, blocks or events over and over");
  } else {
    --records_left_;
  }
  return !failed();
}

void SnapshotSource::check_range(Address address, Bytes size, const char* what, PickleValue near) {
  if (address.value <= UINT64_MAX - size.count) return;
  fail(near, std::string(what) + " of " + std::to_string(size.count) + " bytes at " + std::to_string(address.value) +
                 " ends beyond 64 bits");
}

std::size_t Words::find(const Pickle& pickle, PickleValue value) {
  for (const auto& [met, place] : met_) {
    if (met == value) return place;
  }
  if (value.kind() != PickleValue::Kind::String) return size();
  const auto word = std::ranges::find(words_, pickle.string(value));
  const std::size_t place = std::size_t(word - words_.begin());
  if (met_.size() < kStringsKnown) met_.emplace_back(value, place);
  return place;
}

void Fields::read(SnapshotSource& source, PickleValue dict, const char* what) {
  dict_ = dict;
  source.enter(dict);
  std::ranges::fill(found_, PickleValue{});
  const auto items = source.pickle.items(dict);
  if (dict.kind() != PickleValue::Kind::Dict) {
    return source.fail(dict, std::string(what) + " is " + described(source.pickle, dict) + ", not a dict");
  }
  if (items.size() / 2 > source.limits.keys) {
    return source.fail(dict, std::string(what) + " has " + std::to_string(items.size() / 2) + " keys, at most " +
                                 std::to_string(source.limits.keys) + " are read");
  }
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::size_t place = names_.find(source.pickle, items[i]);
    if (place < found_.size()) found_[place] = items[i + 1];
  }
}

}  // namespace ullage::read
