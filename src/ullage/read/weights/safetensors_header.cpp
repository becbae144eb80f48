// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/safetensors_header.h"

#include "ullage/read/file/printable.h"
#include "ullage/read/weights/weight_tensor.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace ullage::read {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestHeader = 100'000'000;  // bytes; the limit of the format's own reader
constexpr int kDeepestHeader = 3;                      // an object of objects with lists in them
constexpr std::size_t kTextInMessage = 200;

bool is_count(const Json& value) { return value.is_number_unsigned() && value.get<std::uint64_t>() <= INT64_MAX; }

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), kTextInMessage);
}

Error bad_header(const std::string& name, std::uint64_t offset, const std::string& message) {
  return {Error::Kind::BadFile, "damaged: " + message, fmt::format("{}:{}", name, offset)};
}

// Fills `entry` from one tensor's description, with its range relative to the begin of the data. Returns what is wrong
// with the description, or an empty text.
std::string parse_entry(const Json& json, SafetensorsHeader::Entry& entry) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets")) {
    return "dtype, shape or data_offsets is missing";
  }
  const Json& dtype = json["dtype"];
  const auto known = dtype.is_string() ? dtype_named(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!known) return "type " + shown(dtype) + " is none that is known";
  entry.dtype = *known;
  const Json& shape = json["shape"];
  const Json& offsets = json["data_offsets"];
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_count)) return "bad shape " + shown(shape);
  if (!offsets.is_array() || offsets.size() != 2 || !is_count(offsets[0]) || !is_count(offsets[1])) {
    return "bad data_offsets " + shown(offsets);
  }
  entry.shape = shape.get<std::vector<std::int64_t>>();
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  std::uint64_t size = size_of(entry.dtype).count;
  for (const std::int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size)) return "shape passes 2^64 bytes";
  }
  if (entry.end < entry.begin || entry.end - entry.begin != size) {
    return fmt::format("{} {} has {} bytes, data_offsets say {}", name_of(entry.dtype), shown(shape), size,
                       shown(offsets));
  }
  return "";
}

// Fills `metadata`. Returns what is wrong with it, or an empty text.
std::string parse_metadata(const Json& json, std::map<std::string, std::string>& metadata) {
  if (!json.is_object()) return "__metadata__ is not an object";
  for (const auto& [key, text] : json.items()) {
    if (!text.is_string()) return "__metadata__ " + printable(key, kTextInMessage) + " is not text";
    metadata[key] = text.get<std::string>();
  }
  return "";
}

// Checks that the ranges reach from the begin of the data to the file's end, without holes or overlaps.
Status check_places(const SafetensorsHeader& header, std::uint64_t data, std::uint64_t file_size,
                    const std::string& name) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& entry : header.tensors) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t place = data;
  for (const auto& [begin, end] : ranges) {
    if (begin != place)
      return bad_header(name, place, fmt::format("tensors overlap or leave a hole at byte {}", place));
    place = end;
  }
  if (place == file_size) return success();
  return bad_header(name, place,
                    fmt::format("the tensors end at byte {}, but the file has {} bytes", place, file_size));
}

}  // namespace

Status check_safetensors_length(std::uint64_t length, std::uint64_t file_size, const std::string& name) {
  if (length > kLargestHeader && length <= file_size) {
    return bad_header(name, 0,
                      fmt::format("the header states {} bytes for itself, more than the {} that a header may have",
                                  length, kLargestHeader));
  }
  if (file_size >= kSafetensorsLength && length <= file_size - kSafetensorsLength) return success();
  return bad_header(name, 0,
                    fmt::format("the header states {} bytes for itself, but the file has {}", length, file_size));
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t file_size,
                                                   const std::string& name) {
  bool too_deep = false;
  const auto is_shallow = [&](int depth, Json::parse_event_t, Json&) { return !(too_deep |= depth > kDeepestHeader); };
  const Json all = Json::parse(json, is_shallow, false);
  if (too_deep || !all.is_object())
    return bad_header(name, kSafetensorsLength, "the header is not a JSON object of tensors");
  SafetensorsHeader header;
  const std::uint64_t data = kSafetensorsLength + json.size();
  for (const auto& [key, value] : all.items()) {
    if (key == "__metadata__") {
      const std::string wrong = parse_metadata(value, header.metadata);
      if (!wrong.empty()) return bad_header(name, kSafetensorsLength, wrong);
      continue;
    }
    SafetensorsHeader::Entry entry;
    const std::string shown_key = printable(key, kTextInMessage);
    if (const std::string wrong = parse_entry(value, entry); !wrong.empty()) {
      return bad_header(name, kSafetensorsLength, fmt::format("{}: {}", shown_key, wrong));
    }
    if (entry.end > file_size - data) {
      return bad_header(name, file_size,
                        fmt::format("{} ends {} bytes after the header, but the file has only {} there", shown_key,
                                    entry.end, file_size - data));
    }
    entry.name = key;
    entry.begin += data;
    entry.end += data;
    header.tensors.push_back(std::move(entry));
  }
  ULLAGE_TRY(check_places(header, data, file_size, name));
  return header;
}

}  // namespace ullage::read
