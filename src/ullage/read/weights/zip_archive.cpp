// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/zip_archive.h"

#include "ullage/read/file/printable.h"
#include "ullage/read/pickle/pickle_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace ullage::read {
namespace {

constexpr std::uint32_t kHeader = 0x04034b50, kDirectory = 0x02014b50, kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kHeaderSize = 30, kDirectorySize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::uint64_t kIn64 = 0xffffffff;  // in a field of 32 bits: the number is in the zip64 part

std::string quoted(std::string_view name) { return "'" + printable(name, kNameInMessage) + "'"; }

}  // namespace

class ZipParser final {
 public:
  ZipParser(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}

  Result<ZipArchive> parse() {
    if (!find_directory() || !read_directory() || !check_names() || !check_places()) return std::move(*error_);
    ZipArchive archive;
    archive.file_ = file_;
    archive.name_ = name_;
    archive.entries_ = std::move(entries_);
    return archive;
  }

 private:
  std::uint64_t number(std::uint64_t at, std::size_t bytes) const { return little_endian(&file_[at], bytes); }
  bool holds(std::uint64_t at, std::uint64_t bytes) const { return at <= file_.size() && file_.size() - at >= bytes; }
  std::string_view text(std::uint64_t at, std::size_t bytes) const {
    return {reinterpret_cast<const char*>(file_.data()) + at, bytes};
  }
  bool fail(std::uint64_t at, std::string message) {
    error_ = Error{Error::Kind::BadFile, std::move(message), fmt::format("{}:{}", name_, at)};
    return false;
  }

  // Finds the end record. Only its comment may follow it, with exactly the length that it states.
  bool find_directory() {
    const std::size_t size = file_.size();
    for (std::size_t comment = 0; comment <= kLongestComment && kEndSize + comment <= size; ++comment) {
      const std::size_t at = size - kEndSize - comment;
      if (number(at, 4) == kEnd && number(at + 20, 2) == comment) return read_end(at);
    }
    return fail(size,
                fmt::format("a zip archive of {} bytes without its end: the file is cut short, fetch it again", size));
  }

  bool read_end(std::uint64_t at) {
    end_ = at;
    count_ = number(at + 10, 2);
    directory_size_ = number(at + 12, 4);
    directory_ = number(at + 16, 4);
    std::uint64_t disks = number(at + 4, 2) | number(at + 6, 2);
    if (at >= kLocator64Size && number(at - kLocator64Size, 4) == kLocator64) {
      end_ = number(at - kLocator64Size + 8, 8);
      if (!holds(end_, kEnd64Size) || end_ > at - kLocator64Size || number(end_, 4) != kEnd64) {
        return fail(
            at - kLocator64Size,
            fmt::format("the end of the directory is said to be at {}, where it is not: the archive is damaged", end_));
      }
      disks = number(end_ + 16, 4) | number(end_ + 20, 4);
      count_ = number(end_ + 32, 8);
      directory_size_ = number(end_ + 40, 8);
      directory_ = number(end_ + 48, 8);
    }
    if (disks != 0 && disks != 0xffff) return fail(end_, "a part of an archive of several files; join them first");
    if (!holds(directory_, directory_size_) || directory_ + directory_size_ > end_) {
      return fail(end_, fmt::format("a directory of {} bytes at {} does not lie before {}: the archive is damaged",
                                    directory_size_, directory_, end_));
    }
    return true;
  }

  bool read_directory() {
    const std::uint64_t end = directory_ + directory_size_;
    std::uint64_t at = directory_;
    while (at < end) {
      if (end - at < kDirectorySize || number(at, 4) != kDirectory) {
        return fail(
            at, fmt::format("no entry of the directory, {} bytes before its end: the archive is damaged", end - at));
      }
      const std::size_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
      if (end - at - kDirectorySize < name + extra + comment) {
        return fail(at, fmt::format("an entry of {} bytes, the directory has {} left: the archive is damaged",
                                    kDirectorySize + name + extra + comment, end - at));
      }
      if (!read_entry(at, text(at + kDirectorySize, name), at + kDirectorySize + name, extra)) return false;
      at += kDirectorySize + name + extra + comment;
    }
    if (entries_.size() == count_) return true;
    return fail(directory_, fmt::format("the directory has {} entries, its end says {}: the archive is damaged",
                                        entries_.size(), count_));
  }

  bool read_entry(std::uint64_t at, std::string_view name, std::uint64_t extra, std::size_t extra_size) {
    ZipArchive::Entry entry;
    entry.name = name;
    entry.encrypted = (number(at + 8, 2) & 1) != 0;
    entry.method = std::uint16_t(number(at + 10, 2));
    entry.crc = std::uint32_t(number(at + 16, 4));
    entry.size = number(at + 20, 4);
    entry.unpacked = number(at + 24, 4);
    entry.header = number(at + 42, 4);
    if (!read_zip64(entry, extra, extra_size)) {
      return fail(
          at, fmt::format("entry {} has sizes of 64 bits that are not there: the archive is damaged", quoted(name)));
    }
    if (entry.method == 0 && entry.size != entry.unpacked) {
      return fail(at, fmt::format("entry {} is stored in {} bytes and said to have {}: the archive is damaged",
                                  quoted(name), entry.size, entry.unpacked));
    }
    if (!read_header(entry)) return false;
    entries_.push_back(entry);
    return true;
  }

  // Numbers that do not fit 32 bits are in the extra field with id 1, in the order of the loop below.
  bool read_zip64(ZipArchive::Entry& entry, std::uint64_t extra, std::size_t extra_size) const {
    std::uint64_t at = 0, left = 0;
    for (std::size_t i = 0; i + 4 <= extra_size;) {
      const std::size_t size = number(extra + i + 2, 2);
      if (number(extra + i, 2) == 1 && size <= extra_size - i - 4) {
        at = extra + i + 4;
        left = size;
        break;
      }
      i += 4 + size;
    }
    for (std::uint64_t* one : {&entry.unpacked, &entry.size, &entry.header}) {
      if (*one != kIn64) continue;
      if (left < 8) return false;
      *one = number(at, 8);
      at += 8;
      left -= 8;
    }
    return true;
  }

  bool read_header(ZipArchive::Entry& entry) {
    const std::uint64_t at = entry.header;
    if (at > directory_ || directory_ - at < kHeaderSize || number(at, 4) != kHeader) {
      return fail(
          std::min<std::uint64_t>(at, file_.size()),
          fmt::format("entry {} is said to be here, where it is not: the archive is damaged", quoted(entry.name)));
    }
    const std::size_t name = number(at + 26, 2), extra = number(at + 28, 2);
    if (directory_ - at - kHeaderSize < name + extra || text(at + kHeaderSize, name) != entry.name) {
      return fail(at, fmt::format("entry {} has another name here: the archive is damaged", quoted(entry.name)));
    }
    entry.begin = at + kHeaderSize + name + extra;
    if (directory_ - entry.begin >= entry.size) return true;
    return fail(at, fmt::format("entry {} has {} bytes from {}, the directory begins at {}: the archive is damaged",
                                quoted(entry.name), entry.size, entry.begin, directory_));
  }

  bool check_places() {
    std::vector<const ZipArchive::Entry*> by_place;
    by_place.reserve(entries_.size());
    for (const auto& entry : entries_) by_place.push_back(&entry);
    std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) { return a->header < b->header; });
    for (std::size_t i = 1; i < by_place.size(); ++i) {
      const auto &before = *by_place[i - 1], &entry = *by_place[i];
      if (before.begin + before.size <= entry.header) continue;
      return fail(entry.header, fmt::format("entry {} begins before entry {} ends, at {}: the archive is damaged",
                                            quoted(entry.name), quoted(before.name), before.begin + before.size));
    }
    return true;
  }

  bool check_names() {
    std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(entries_.begin(), entries_.end(),
                                          [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice == entries_.end()) return true;
    return fail(std::max(twice[0].header, twice[1].header),
                fmt::format("entry {} is there twice, also at {}: the archive is damaged", quoted(twice->name),
                            std::min(twice[0].header, twice[1].header)));
  }

  const std::span<const std::byte> file_;
  const std::string& name_;
  std::uint64_t end_ = 0, directory_ = 0, directory_size_ = 0, count_ = 0;
  std::vector<ZipArchive::Entry> entries_;
  std::optional<Error> error_;
};

Result<ZipArchive> ZipArchive::parse(std::span<const std::byte> file, const std::string& name) {
  return ZipParser(file, name).parse();
}

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

Result<std::span<const std::byte>> ZipArchive::stored(const Entry& entry) const {
  if (!entry.encrypted && entry.method == 0) return file_.subspan(entry.begin, entry.size);
  const std::string how = entry.encrypted ? "encrypted" : fmt::format("compressed (method {})", entry.method);
  return Error{Error::Kind::BadFile,
               fmt::format("entry {} is {}, torch.save only stores; save it again with torch, or with zip -0",
                           quoted(entry.name), how),
               fmt::format("{}:{}", name_, entry.header)};
}

}  // namespace ullage::read
