// SPDX-License-Identifier: Apache-2.0
#include "dcgan/safetensors_format.h"

#include "dcgan/sha256.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ullage::dcgan {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as the format's own reader has it
constexpr std::uint64_t kBuffer = 1ull << 20;

// All `size` bytes at `offset`, or false (an error, or the file ends before).
bool read_all(int fd, void* out, std::uint64_t size, std::uint64_t offset) {
  auto* bytes = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(fd, bytes, std::min<std::uint64_t>(size, 1ull << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::uint64_t>(got);
  }
  return true;
}

bool is_count(const Json& value) { return value.is_number_unsigned() && value.get<std::uint64_t>() <= INT64_MAX; }

// Fills `entry` from one tensor's description, or says what is wrong with it.
std::string parse_entry(const Json& json, SafetensorsFile::Entry& entry) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets")) {
    return "dtype, shape or data_offsets is missing";
  }
  const Json& dtype = json["dtype"];
  const auto known = dtype.is_string() ? dtype_named(dtype.get<std::string>()) : std::nullopt;
  if (!known) return "type " + dtype.dump() + " is none of F32, I64, U8";
  entry.shape.dtype = *known;
  const Json& shape = json["shape"];
  const Json& offsets = json["data_offsets"];
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_count)) return "bad shape " + shape.dump();
  if (!offsets.is_array() || offsets.size() != 2 || !is_count(offsets[0]) || !is_count(offsets[1])) {
    return "bad data_offsets " + offsets.dump();
  }
  entry.shape.sizes = shape.get<std::vector<std::int64_t>>();
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  std::uint64_t size = size_of(entry.shape.dtype).count;
  for (const std::int64_t extent : entry.shape.sizes) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size)) return "shape passes 2^64 bytes";
  }
  if (entry.end < entry.begin || entry.end - entry.begin != size) {
    return to_string(entry.shape) + " has " + std::to_string(size) + " bytes, data_offsets say " + offsets.dump();
  }
  return "";
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const auto kind = errno == ENOENT ? Error::Kind::NotFound : Error::Kind::System;
    return Error{kind, std::strerror(errno), path};
  }
  SafetensorsFile file(path, fd);
  if (Status status = file.read_header(); !status) return status.error();
  return file;
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_begin_(other.data_begin_),
      entries_(std::move(other.entries_)),
      metadata_(std::move(other.metadata_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status SafetensorsFile::read_header() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) return bad("no regular file");
  const auto file_size = static_cast<std::uint64_t>(info.st_size);
  std::uint64_t length = 0;
  if (!read_all(fd_, &length, sizeof length, 0)) {
    return bad("damaged: " + std::to_string(file_size) + " bytes are too few for a header");
  }
  if (length > kLargestHeader || length > file_size - sizeof length) {
    return bad("damaged: header claims " + std::to_string(length) + " bytes, the file has " +
               std::to_string(file_size));
  }
  std::string header(length, '\0');
  if (!read_all(fd_, header.data(), length, sizeof length)) return bad("damaged: header cannot be read");
  data_begin_ = sizeof length + length;
  return parse_header(header, file_size);
}

Status SafetensorsFile::parse_header(const std::string& header, std::uint64_t file_size) {
  const Json json = Json::parse(header, nullptr, false);
  if (!json.is_object()) return bad("damaged: header is no JSON object");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return bad("damaged: __metadata__ is no object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return bad("damaged: __metadata__ " + key + " is no text");
        metadata_[key] = text.get<std::string>();
      }
      continue;
    }
    Entry entry;
    if (const std::string wrong = parse_entry(value, entry); !wrong.empty())
      return bad("damaged: " + name + ": " + wrong);
    ranges.emplace_back(entry.begin, entry.end);
    if (entry.end > file_size - data_begin_) {
      return bad("damaged: " + name + " ends at byte " + std::to_string(data_begin_ + entry.end) + ", the file has " +
                 std::to_string(file_size));
    }
    entry.begin += data_begin_;
    entry.end += data_begin_;
    entries_[name] = std::move(entry);
  }
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t place = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != place)
      return bad("damaged: tensors overlap or leave a hole at byte " + std::to_string(data_begin_ + place));
    place = end;
  }
  if (data_begin_ + place != file_size) {
    return bad("damaged: tensors end at byte " + std::to_string(data_begin_ + place) + ", the file has " +
               std::to_string(file_size));
  }
  return success();
}

Status SafetensorsFile::verify() const {
  const auto stated = metadata_.find("sha256");
  if (stated == metadata_.end()) return bad("no sha256 in __metadata__: not a checkpoint of this program");
  std::string head(data_begin_, '\0');
  if (!read_all(fd_, head.data(), head.size(), 0)) return bad("damaged: header cannot be read");
  const std::size_t place = digest_place(head);
  if (place == std::string::npos) return bad("damaged: the sha256 in __metadata__ is not 64 digits");
  std::fill_n(head.begin() + static_cast<std::ptrdiff_t>(place), kDigestDigits, '0');
  Sha256 digest;
  digest.update(head);
  std::vector<char> buffer(kBuffer);
  std::uint64_t end = data_begin_;
  for (const auto& [name, entry] : entries_) end = std::max(end, entry.end);
  for (std::uint64_t at = data_begin_; at < end;) {
    const std::uint64_t piece = std::min<std::uint64_t>(kBuffer, end - at);
    if (!read_all(fd_, buffer.data(), piece, at)) {
      return bad("damaged: " + std::to_string(end) + " bytes expected, reading ends near byte " + std::to_string(at));
    }
    digest.update(buffer.data(), Bytes{piece});
    at += piece;
  }
  const std::string found = digest.finish();
  if (found != stated->second) {
    return bad("damaged: its SHA-256 is " + found.substr(0, 12) + "..., the file states " +
               stated->second.substr(0, 12) + "...");
  }
  return success();
}

Status SafetensorsFile::read(const std::string& name, void* out) const {
  const auto entry = entries_.find(name);
  ULLAGE_CHECK(entry != entries_.end(), "read of a tensor that the file has");
  if (!read_all(fd_, out, entry->second.end - entry->second.begin, entry->second.begin)) {
    return bad("cannot read " + name + " at byte " + std::to_string(entry->second.begin));
  }
  return success();
}

}  // namespace ullage::dcgan
