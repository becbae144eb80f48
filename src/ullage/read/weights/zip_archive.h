// SPDX-License-Identifier: Apache-2.0
#pragma once

// The entries of a zip archive, by name: where their bytes lie in it. Sizes of more than 32 bits (zip64) are read;
// nothing is unpacked.
//
//   header name extra | bytes | header name extra | bytes | ... | directory | end of directory
//
// APPNOTE.TXT of PKWARE, 4.3. The directory counts; each entry's own header must have its name and say where its bytes
// begin (its sizes may be left open).

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
    std::uint64_t header = 0;  // place in the file
    std::uint64_t begin = 0;   // of the bytes, as they are stored
    std::uint64_t size = 0;    // as they are stored
    std::uint64_t unpacked = 0;
    std::uint32_t crc = 0;     // of the unpacked bytes; 0 also where the writer left it out
    std::uint16_t method = 0;  // 0: stored
    bool encrypted = false;
  };

  // BadFile with `name:offset`: no archive, cut short, entries that pass the file's end, overlap or share a name. The
  // bytes must outlive the archive.
  static Result<ZipArchive> parse(std::span<const std::byte> file, const std::string& name);

  std::span<const Entry> entries() const { return entries_; }  // by name
  const Entry* find(std::string_view name) const;              // null when there is none
  // The bytes of an entry that is neither compressed nor encrypted; BadFile for others.
  Result<std::span<const std::byte>> stored(const Entry& entry) const;

 private:
  friend class ZipParser;
  std::span<const std::byte> file_;
  std::string name_;
  std::vector<Entry> entries_;
};

}  // namespace ullage::read
