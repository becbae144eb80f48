// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/file_parts.h"

#include "ullage/trace/file/trace_file.h"

#include <zlib.h>

#include <algorithm>

namespace ullage::trace {
namespace {

constexpr std::size_t kHeader = 4 + 8;  // the letters of the kind, and the length
constexpr std::size_t kChecksum = 4;

template <std::size_t kBytes>
std::array<char, kBytes> little_endian(std::uint64_t value) {
  std::array<char, kBytes> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

std::uint64_t from_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
  return value;
}

std::uint32_t checksum(std::span<const std::byte> a, std::span<const std::byte> b) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const auto bytes : {a, b}) {  // an empty span can be a null pointer, at which crc32_z would begin anew
    if (!bytes.empty()) sum = crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

PartWriter::PartWriter(std::ostream& out) : out_(out) { out_ << kTraceFileMagic << kTraceFileVersion << '\n'; }

void PartWriter::write(std::string_view kind, std::span<const std::byte> content) {
  std::array<char, kHeader> header{};
  std::ranges::copy(kind, header.begin());
  std::ranges::copy(little_endian<8>(content.size()), header.begin() + 4);
  out_.write(header.data(), header.size());
  out_.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  const auto sum = little_endian<kChecksum>(checksum(std::as_bytes(std::span(header)), content));
  out_.write(sum.data(), sum.size());
  ++parts_;
}

void PartWriter::write(std::string_view kind, std::string_view content) {
  write(kind, std::as_bytes(std::span(content)));
}

void PartWriter::finish() {
  const auto parts = little_endian<8>(parts_);
  write(part::kEnd, std::as_bytes(std::span(parts)));
}

Error PartReader::bad(std::string message, std::size_t offset) const {
  return {Error::Kind::BadFile, std::move(message), name_ + ":" + std::to_string(offset)};
}

Status PartReader::begin() {
  const std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
  if (!text.starts_with(kTraceFileMagic)) {
    return bad("not a trace of Ullage: it does not begin with \"" + std::string(kTraceFileMagic) + "\"", 0);
  }
  constexpr std::size_t kMostDigits = 9;
  const std::size_t begin = kTraceFileMagic.size();
  const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
  if (end == text.size()) return bad("the trace is cut off in its first line: copy or record it again", end);
  if (end == begin || end - begin > kMostDigits || text[end] != '\n') return bad("the first line is damaged", begin);
  const unsigned long version = std::stoul(std::string(text.substr(begin, end - begin)));
  if (version != kTraceFileVersion) {
    return bad("a trace of version " + std::to_string(version) + ", but this ullage reads version " +
                   std::to_string(kTraceFileVersion) +
                   (version > kTraceFileVersion ? ": read it with the ullage that wrote it, or a newer one"
                                                : ": no such version was ever written"),
               begin);
  }
  at_ = end + 1;
  return success();
}

Result<Part> PartReader::next() {
  const std::size_t left = file_.size() - at_;
  if (left < kHeader) {
    return bad("the trace is cut off: a part should begin here with " + std::to_string(kHeader) + " bytes, " +
                   std::to_string(left) + " are left; copy or record it again",
               at_);
  }
  const auto header = file_.subspan(at_, kHeader);
  const std::uint64_t size = from_little_endian(header.subspan(4));
  if (left - kHeader < kChecksum || size > left - kHeader - kChecksum) {
    return bad("the trace is cut off or damaged: a part of " + std::to_string(size) + " bytes begins here, " +
                   std::to_string(left - kHeader) + " are left; copy or record it again",
               at_);
  }
  Part part;
  std::ranges::transform(header.first(4), part.kind_letters.begin(), [](std::byte b) { return static_cast<char>(b); });
  part.content = file_.subspan(at_ + kHeader, size);
  part.offset = at_ + kHeader;
  const std::uint64_t stated = from_little_endian(file_.subspan(part.offset + size, kChecksum));
  const std::uint32_t actual = checksum(header, part.content);
  if (stated != actual) {
    return bad("a part of " + std::to_string(size) + " bytes is damaged: its checksum is " + std::to_string(actual) +
                   ", stated " + std::to_string(stated),
               at_);
  }
  at_ = part.offset + size + kChecksum;
  if (part.kind() == part::kEnd) {
    ULLAGE_TRY(check_end(part));
  }
  ++parts_;
  return part;
}

Status PartReader::check_end(const Part& part) const {
  if (part.content.size() != 8) {
    return bad("the end part has " + std::to_string(part.content.size()) + " bytes, not 8", part.offset);
  }
  const std::uint64_t stated = from_little_endian(part.content);
  if (stated != parts_) {
    return bad(
        "parts are missing: " + std::to_string(parts_) + " are there, " + std::to_string(stated) + " were written",
        part.offset);
  }
  if (at_ != file_.size()) return bad(std::to_string(file_.size() - at_) + " bytes after the end of the trace", at_);
  return success();
}

}  // namespace ullage::trace
