// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files that the test and the program with torch's allocator (replay_real.cpp) exchange. The test writes a case and
// its operations; the program writes totals and events. Both are built on one machine for one run, so the structs are
// written as they lie in memory. Includes neither torch nor Ullage, because both sides include it.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace ullage::oracle {

inline constexpr unsigned kStreams = 4;

struct Operation {
  enum class Kind : std::uint8_t {
    Allocate,      // `bytes` on `stream`; later operations name the block by `block`
    Free,          // does nothing if the allocation failed
    RecordStream,  // `stream` uses the block too; does nothing if the allocation failed
    EmptyCache,
  };
  std::uint64_t bytes = 0;
  std::uint32_t block = 0;
  Kind kind = Kind::EmptyCache;
  std::uint8_t stream = 0;

  friend bool operator==(const Operation&, const Operation&) = default;
};

struct SeenEvent {
  enum class Action : std::uint8_t {
    Allocated,
    FreeRequested,
    FreeCompleted,
    SegmentAllocated,
    SegmentFreed,
    SegmentMapped,
    SegmentUnmapped,
    OutOfMemory,  // `address` is the number of bytes that the device had left
  };
  std::uint64_t address = 0;  // counted from kFakeBaseAddress
  std::uint64_t bytes = 0;
  std::uint32_t operation = 0;  // during which it was seen
  Action action = Action::Allocated;
  std::uint8_t stream = 0;

  friend bool operator==(const SeenEvent&, const SeenEvent&) = default;
};

struct Totals {
  std::uint64_t allocated = 0, allocated_peak = 0, reserved = 0, reserved_peak = 0;  // bytes, blocks rounded up
  std::uint64_t segments = 0, retries = 0, out_of_memory = 0;

  friend bool operator==(const Totals&, const Totals&) = default;
};

struct CaseHeader {
  std::uint64_t device_bytes = 0;
  double memory_fraction = 1;
  std::uint64_t event_queries = 0;
  std::uint64_t first_fit = 0;  // 0 or 1
  std::uint64_t operations = 0;
};

struct RunHeader {
  Totals totals;
  std::uint64_t stream_ids[kStreams] = {};  // c10's
  double seconds = 0;                       // in the allocator
  std::uint64_t events = 0;
};

// These return false if the file could not be written or read whole.
template <class Header, class Item>
bool write_exchange(const std::string& path, const Header& header, const std::vector<Item>& items) {
  static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Item>);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "wb"), &std::fclose);
  return file != nullptr && std::fwrite(&header, sizeof header, 1, file.get()) == 1 &&
         std::fwrite(items.data(), sizeof(Item), items.size(), file.get()) == items.size() &&
         std::fflush(file.get()) == 0;
}

template <class Header, class Item>
bool read_exchange(const std::string& path, Header& header, std::uint64_t Header::*count, std::vector<Item>& items) {
  static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Item>);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr || std::fread(&header, sizeof header, 1, file.get()) != 1) return false;
  items.resize(header.*count);
  return std::fread(items.data(), sizeof(Item), items.size(), file.get()) == items.size();
}

}  // namespace ullage::oracle
