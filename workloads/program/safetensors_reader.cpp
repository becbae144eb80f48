// SPDX-License-Identifier: Apache-2.0
#include "program/safetensors.h"

#include "program/safetensors_format.h"
#include "program/sha256.h"
#include "ullage/read/weights/safetensors_header.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ullage::program {
namespace {

constexpr std::uint64_t kBuffer = 1ull << 20;

// Reads all `size` bytes at `offset`. Returns false on an error or if the file ends before.
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

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const auto kind = errno == ENOENT ? Error::Kind::NotFound : Error::Kind::System;
    return Error{kind, std::strerror(errno), path};
  }
  SafetensorsFile file(path, fd);
  ULLAGE_TRY(file.read_header());
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
  ULLAGE_TRY(read::check_safetensors_length(length, file_size, path_));
  std::string header(length, '\0');
  if (!read_all(fd_, header.data(), length, sizeof length)) return bad("damaged: header cannot be read");
  data_begin_ = sizeof length + length;
  return take_entries(header, file_size);
}

Status SafetensorsFile::take_entries(const std::string& header, std::uint64_t file_size) {
  ULLAGE_TRY_VALUE(auto parsed, read::parse_safetensors_header(header, file_size, path_));
  metadata_ = std::move(parsed.metadata);
  for (auto& [name, dtype, shape, begin, end] : parsed.tensors) {
    if (dtype != Dtype::F32 && dtype != Dtype::I64 && dtype != Dtype::U8) {
      return bad(name + ": type " + std::string(name_of(dtype)) + " is none of F32, I64, U8");
    }
    entries_[name] = {{dtype, std::move(shape)}, begin, end};
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

}  // namespace ullage::program
