// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads what the kernel says about each page of this process (/proc/self/pagemap; "pagemap" in the kernel's admin
// guide). Edit it to ask for another fact.

#include "ullage/base/bytes.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ullage::store {

class PageMap final {
 public:
  PageMap();
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // One entry for each page. For a page that is not there all three answers are no.
  class Entry final {
   public:
    bool is_there() const { return (bits_ & kThere) != 0; }                   // in memory, or in swap
    bool is_of_file() const { return is_there() && (bits_ & kOfFile) != 0; }  // unchanged from its file, or shared
    bool is_written() const { return is_there() && (bits_ & kOfFile) == 0; }  // the process's own copy

   private:
    static constexpr std::uint64_t kThere = std::uint64_t{3} << 62U;
    static constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61U;
    std::uint64_t bits_ = 0;
  };
  static constexpr std::size_t kMost = 512;  // pages in one read
  // Fills `entries` (kMost at most) for the pages from `at` on, which must be the begin of a page. False: the kernel
  // does not tell; no descriptor was free, for example. Allocates nothing.
  bool read(Address at, std::span<Entry> entries) const;

 private:
  const int file_;
};

}  // namespace ullage::store
