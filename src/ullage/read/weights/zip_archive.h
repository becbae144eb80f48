// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the entries of a zip archive by name, and where their bytes lie. Reads sizes of more than 32 bits (zip64), but
// unpacks nothing.
//
//   header name extra | bytes | header name extra | bytes | ... | directory | end of directory
//
// The format: APPNOTE.TXT of PKWARE, 4.3. The directory is decisive. An entry's own header must repeat the name, and
// says where the bytes begin; its sizes may be left open, and are not read.

#include "ullage/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

class ZipArchive final {
 public:
  struct Entry {
    std::string_view name;
    std::uint64_t header = 0;  // its offset in the file
    std::uint64_t begin = 0;   // offset of the stored bytes
    std::uint64_t size = 0;    // number of the stored bytes
    std::uint64_t unpacked = 0;
    std::uint32_t crc = 0;     // of the unpacked bytes; 0 also if the writer left it out
    std::uint16_t method = 0;  // 0: stored without compression
    bool encrypted = false;
  };

  // BadFile with `name:offset` if it is no archive, is cut short, or has entries that pass the file's end, overlap or
  // share a name. `file` must outlive the archive.
  static Result<ZipArchive> parse(std::span<const std::byte> file, const std::string& name);

  std::span<const Entry> entries() const { return entries_; }  // sorted by name
  const Entry* find(std::string_view name) const;              // null if there is none
  // Returns the bytes of an entry that is neither compressed nor encrypted; BadFile for others.
  Result<std::span<const std::byte>> stored(const Entry& entry) const;

 private:
  friend class ZipParser;
  std::span<const std::byte> file_;
  std::string name_;
  std::vector<Entry> entries_;
};

}  // namespace ullage::read
